#include "cortado/measure/job_times.h"

#include "cortado/cost/measured.h"
#include "cortado/machine/file.h"

#include "tests/measure/kept.h"

namespace cortado {
namespace {

using ::testing::HasSubstr;
using testing::made_up;
using testing::small_convolution;

class JobTimesTest : public testing::KeptCache {
 protected:
  std::unique_ptr<Communicator> job_ = make_single_communicator();
};

// What was tried is known to the next job, also where nothing else was measured in the same one.
TEST_F(JobTimesTest, KeepsWhatWasTried) {
  {
    JobTimes costs(*job_);
    EXPECT_FALSE(costs.machine_measured());
    EXPECT_FALSE(costs.known("iteration of a net"));
    costs.keep("iteration of a net", {0.25});
    EXPECT_EQ(costs.known("iteration of a net"), Seconds{0.25});
    costs.save();
  }
  JobTimes costs(*job_);
  EXPECT_EQ(costs.known("iteration of a net"), Seconds{0.25});
  EXPECT_FALSE(costs.known("iteration of another net"));
}

TEST_F(JobTimesTest, ForgetsWhatIsNotSaved) {
  JobTimes(*job_).keep("iteration of a net", {0.25});
  EXPECT_FALSE(JobTimes(*job_).known("iteration of a net"));
}

TEST_F(JobTimesTest, KeepsTimesByTaskAndKernel) {
  const Task task = small_convolution(8), other = small_convolution(9);
  {
    JobTimes costs(*job_);
    costs.keep(task, "direct", made_up("direct"));
    costs.keep(task, "", made_up("any"));
    costs.save();
  }
  JobTimes costs(*job_);
  ASSERT_NE(costs.known(task, "direct"), nullptr);
  EXPECT_EQ(costs.known(task, "direct")->total(), made_up("direct").total());
  EXPECT_EQ(costs.known(task, "direct")->backward_weights, made_up("direct").backward_weights);
  EXPECT_EQ(costs.known(task, "")->total(), made_up("any").total());
  EXPECT_EQ(costs.known(task, "winograd"), nullptr);
  EXPECT_EQ(costs.known(other, "direct"), nullptr);
}

TEST_F(JobTimesTest, WritesOnlyWhatIsNew) {
  JobTimes costs(*job_);
  costs.save();
  const std::string file = kept_file("tasks-");
  std::filesystem::remove(file);
  costs.save();
  EXPECT_FALSE(std::filesystem::exists(file));
  costs.keep("iteration of a net", {0.25});
  costs.save();
  EXPECT_TRUE(std::filesystem::exists(file));
}

// The machine is taken from the file, not measured.
TEST_F(JobTimesTest, TheKeptMachineCounts) {
  edit("machine-", [](Json& machine) { machine["name"] = "kept"; });
  const JobTimes costs(*job_, tell_);
  EXPECT_FALSE(costs.machine_measured());
  EXPECT_EQ(costs.machine().machine().name, "kept");
  EXPECT_EQ(told_, "");
}

// Iterations depend on links, too; tasks do not.
TEST_F(JobTimesTest, WhatWasTriedIsOfItsMachineAlone) {
  const Task task = small_convolution();
  {
    JobTimes costs(*job_);
    costs.keep("iteration of a net", {0.25});
    costs.keep(task, "", made_up("any"));
    costs.save();
  }
  edit("machine-", [](Json& machine) { machine["name"] = "another"; });
  const JobTimes costs(*job_);
  EXPECT_FALSE(costs.known("iteration of a net"));
  EXPECT_NE(costs.known(task, ""), nullptr);
}

// A file that is no use costs time: what it held is measured anew, and it is written again.
TEST_F(JobTimesTest, MeasuresADamagedMachineAnew) {
  const std::string sound = read_file(kept_file("machine-"));
  overwrite("machine-", sound.substr(0, sound.size() / 2));
  const JobTimes costs(*job_, tell_);
  EXPECT_TRUE(costs.machine_measured());
  EXPECT_THAT(told_, HasSubstr(kept_file("machine-")));
  EXPECT_THAT(told_, HasSubstr("it is measured anew"));
  EXPECT_EQ(parse_machine(read_file(kept_file("machine-")), "test"), costs.machine());
}

// Kept for two devices, as if the job had had two ranks.
TEST_F(JobTimesTest, MeasuresAMachineOfAnotherJobAnew) {
  Machine machine = parse_machine(read_file(kept_file("machine-")), "test").machine();
  machine.nodes[0].devices.push_back(machine.nodes[0].devices[0]);
  machine.nodes[0].links = {{.group = 2, .link = {{1e-6}, {1e9}}}};
  overwrite("machine-", machine_text(DeviceGraph(machine)));
  const JobTimes costs(*job_);
  EXPECT_TRUE(costs.machine_measured());
  EXPECT_EQ(costs.machine().devices(), 1);
}

class DamagedTimes : public JobTimesTest {
 protected:
  // Keeps a task, changes the file, and looks for the task.
  void expect_forgotten(const std::function<void()>& damage, const std::string& notice) {
    SCOPED_TRACE(notice);
    const Task task = small_convolution();
    {
      JobTimes costs(*job_);
      costs.keep(task, "", made_up("any"));
      costs.save();
    }
    damage();
    told_.clear();
    const JobTimes costs(*job_, tell_);
    EXPECT_EQ(costs.known(task, ""), nullptr);
    EXPECT_THAT(told_, HasSubstr(notice));
    EXPECT_THAT(told_, HasSubstr(kept_file("tasks-")));
  }
};

TEST_F(DamagedTimes, AreForgottenWhole) {
  const auto set = [&](const char* key, const Json& value) {
    return [=, this] { edit("tasks-", [&](Json& file) { file[key] = value; }); };
  };
  expect_forgotten(set("build", "another build"), "build: 'another build' is not");
  expect_forgotten(set("machine", "another machine"), "machine: 'another machine' is not");
  expect_forgotten(set("version", 1), "version: 1 is not supported");
  expect_forgotten(set("tasks", "none"), "tasks: \"none\" is not a list");
  expect_forgotten([&] { overwrite("tasks-", "{\"format\": \"cort"); }, "is not JSON");
  // One bad entry among good ones, and one bad duration beside them.
  expect_forgotten(
      [&] {
        edit("tasks-", [](Json& file) { file["tasks"].push_back({{"task", "x"}, {"forward_seconds", -1}}); });
      },
      "is negative");
  expect_forgotten(
      [&] {
        edit("tasks-", [](Json& file) { file["durations"].push_back({{"of", "x"}, {"seconds", -1}}); });
      },
      "is negative");
}

// An update is always known: it is measured where it is not.
TEST_F(JobTimesTest, MeasuresAnUpdateOnce) {
  const auto update = [](JobTimes& costs) {
    return costs.table().find_duration(MeasuredCosts::update_name).value();
  };
  JobTimes first(*job_);
  const Seconds kept = update(first);
  EXPECT_GT(kept, Seconds{});
  JobTimes second(*job_);
  EXPECT_EQ(update(second), kept);
  std::filesystem::remove(kept_file("tasks-"));
  JobTimes third(*job_);
  EXPECT_GT(update(third), Seconds{});
}

// Measures on ranks that are threads: figures mean little, but all ranks get the same.
class TimesOfRanks : public testing::KeptCache {
 protected:
  TimesOfRanks() : KeptCache(2) {}
};

TEST_F(TimesOfRanks, AreTheSlowestRanksAtEveryRank) {
  for (const bool cut : {false, true}) {
    std::vector<TaskTime> times(2);
    LocalJob(2).run([&](Communicator& job) {
      times[static_cast<size_t>(job.rank())] = JobTimes(job).measure(small_convolution(8, cut), "", 1);
    });
    EXPECT_EQ(times[0].forward, times[1].forward);
    EXPECT_EQ(times[0].backward_weights, times[1].backward_weights);
    EXPECT_GT(times[0].forward, Seconds{});
    EXPECT_GT(times[0].backward_weights, Seconds{});
  }
}

TEST_F(TimesOfRanks, MustBeOfOneTask) {
  const auto measure = [](Communicator& job) {
    JobTimes(job).measure(small_convolution(8 + job.rank(), true), "", 1);
  };
  EXPECT_THROW(LocalJob(2).run(measure), InternalError);
}

// The first rank's file decides for all, and it alone is told.
TEST_F(TimesOfRanks, ComeFromTheFirstRanksFile) {
  overwrite("tasks-", "damaged");
  std::vector<std::string> told(2);
  std::vector<std::string> tables(2);
  LocalJob(2).run([&](Communicator& job) {
    const auto rank = static_cast<size_t>(job.rank());
    JobTimes times(job, [&, rank](const std::string& line) { told[rank] += line; });
    times.keep("iteration of a net", {0.25});
    tables[rank] = times.table().text();
    times.save();
  });
  EXPECT_THAT(told[0], HasSubstr("is not JSON"));
  EXPECT_EQ(told[1], "");
  EXPECT_EQ(tables[0], tables[1]);
  EXPECT_EQ(read_file(kept_file("tasks-")), tables[0]);
}

}  // namespace
}  // namespace cortado
