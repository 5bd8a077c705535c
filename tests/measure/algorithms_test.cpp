#include "cortado/measure/algorithms.h"

#include "cortado/compile/compile.h"
#include "cortado/kernels/kernel.h"
#include "cortado/kernels/select.h"

#include "tests/measure/kept.h"
#include "tests/plan/zoo.h"

namespace cortado {
namespace {

using testing::made_up;
using testing::small_convolution;

class AlgorithmsTables : public testing::KeptCache {
 protected:
  std::unique_ptr<Communicator> job_ = make_single_communicator();
  JobTimes times_{*job_};

  static const Algorithm& picked(const AlgorithmTable& table) {
    return table.algorithms.at(static_cast<size_t>(table.pick));
  }
  // Keeps a made-up time for each implementation of a task.
  void keep_made_up(const Task& task) {
    for (const Implementation& one : implementations_of(task))
      times_.keep(task, one.name, made_up(problem_of(task, one.name)));
  }
};

// The first listed is the one that runs unasked; the pick is the least of those measured.
TEST_F(AlgorithmsTables, PickTheFastestAndKeepWhatIsThorough) {
  const Task task = small_convolution();
  const AlgorithmTable quick = Algorithms(times_).tables({task}, Algorithms::Effort::quick).front();
  EXPECT_EQ(times_.known(task, picked(quick).name), nullptr);
  const AlgorithmTable table = Algorithms(times_).tables({task}).front();
  ASSERT_GE(table.pick, 0);
  for (const Algorithm& other : table.algorithms) {
    EXPECT_EQ(other.time.has_value(), other.refusal.empty() && other.pruned.empty()) << other.name;
    if (!other.time) continue;
    EXPECT_LE(picked(table).time->total().count, other.time->total().count) << other.name;
  }
  EXPECT_EQ(table.algorithms[static_cast<size_t>(table.listed)].name, select_kernel(task).implementation);
  ASSERT_NE(times_.known(task, picked(table).name), nullptr);
  EXPECT_EQ(times_.known(task, picked(table).name)->total(), picked(table).time->total());
}

// Kernels for bf16 tensors run before those that convert them, wherever they stand in the list.
TEST_F(AlgorithmsTables, ListInBf16WhatRunsUnasked) {
  for (const int64_t filters : {1, 3, 8, 16}) {
    Task task = small_convolution(filters);
    task.input_types.assign(task.inputs.size(), ElementType::bf16);
    task.output_types.assign(task.outputs.size(), ElementType::bf16);
    keep_made_up(task);
    const AlgorithmTable table = Algorithms(times_).tables({task}).front();
    ASSERT_GE(table.listed, 0);
    EXPECT_EQ(table.algorithms[static_cast<size_t>(table.listed)].name, select_kernel(task).implementation);
  }
}

// Where all times are kept, nothing is measured, and the pick is the least of them.
TEST_F(AlgorithmsTables, TakeKeptTimes) {
  for (int64_t filters = 8; filters < 14; ++filters) {
    const Task task = small_convolution(filters);
    keep_made_up(task);
    const AlgorithmTable table = Algorithms(times_).tables({task}).front();
    const Algorithm* least = nullptr;
    for (const Algorithm& one : table.algorithms) {
      if (!one.refusal.empty() || !one.pruned.empty()) {
        EXPECT_FALSE(one.time.has_value()) << one.name;
        continue;
      }
      ASSERT_TRUE(one.time.has_value()) << one.name;
      EXPECT_EQ(one.time->total(), made_up(problem_of(task, one.name)).total()) << one.name;
      if (least == nullptr || one.time->total() < least->time->total()) least = &one;
    }
    ASSERT_NE(least, nullptr);
    EXPECT_EQ(picked(table).name, least->name);
    EXPECT_EQ(Algorithms(times_).fastest(task).total(), least->time->total());
  }
}

// Lowerings that the model takes to be half again as slow as the best one, save the one that is listed.
TEST_F(AlgorithmsTables, LeaveOutWhatIsFarSlowerByTheModel) {
  int left_out = 0;
  for (const int64_t filters : {1, 8, 64, 256}) {
    const Task task = small_convolution(filters);
    keep_made_up(task);
    const AlgorithmTable table = Algorithms(times_).tables({task}).front();
    double best = 1e300;
    const auto competes = [](const Algorithm& one) {
      return one.name.starts_with("lowering-") && one.refusal.empty();
    };
    for (const Algorithm& one : table.algorithms)
      if (competes(one)) best = std::min(best, one.predicted.count);
    for (size_t i = 0; i < table.algorithms.size(); ++i) {
      const Algorithm& one = table.algorithms[i];
      const bool far =
          competes(one) && one.predicted.count > 1.5 * best && static_cast<int>(i) != table.listed;
      EXPECT_EQ(one.pruned == "far slower by the model", far) << one.name;
      left_out += far ? 1 : 0;
    }
  }
  EXPECT_GT(left_out, 0);
}

TEST_F(AlgorithmsTables, AreThoseOfConvolutionsAlone) {
  EXPECT_TRUE(is_convolution(small_convolution()));
  const Network net = testing::zoo_net("lenet", 8, {1, 28, 28});
  const Compiled compiled = compile(net);
  std::vector<std::string> convolutions;
  for (const Work& work : compiled.program.works)
    if (work.kind == Work::Kind::compute && is_convolution(work.task))
      convolutions.push_back(name_of(work, net)), keep_made_up(work.task);
  ASSERT_EQ(convolutions.size(), 2u);
  Algorithms algorithms(times_);
  const auto found = convolutions_of(net, compiled.program, algorithms);
  ASSERT_EQ(found.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(found[i].layers, std::vector{convolutions[i]});
}

// Two layers that are the same convolution are one problem.
TEST_F(AlgorithmsTables, NameAllLayersOfAConvolution) {
  const Network net = testing::zoo_net("vgg-16", 1, {3, 32, 32});
  const Compiled compiled = compile(net);
  size_t layers = 0;
  for (const Work& work : compiled.program.works) {
    if (work.kind != Work::Kind::compute || !is_convolution(work.task)) continue;
    ++layers;
    keep_made_up(work.task);
  }
  Algorithms algorithms(times_);
  size_t named = 0, several = 0;
  for (const NetConvolution& one : convolutions_of(net, compiled.program, algorithms)) {
    named += one.layers.size();
    several += one.layers.size() > 1 ? 1 : 0;
    EXPECT_EQ(picked(one.table).time->total(), made_up(problem_of(one.task, picked(one.table).name)).total());
  }
  EXPECT_EQ(named, layers);
  EXPECT_GT(several, 0u);
}

class AlgorithmsOfRanks : public testing::KeptCache {
 protected:
  AlgorithmsOfRanks() : KeptCache(2) {}
};

TEST_F(AlgorithmsOfRanks, AreTheSameOnAllRanks) {
  std::vector<std::string> told(2);
  LocalJob(2).run([&](Communicator& job) {
    JobTimes times(job);
    for (const AlgorithmTable& table : Algorithms(times).tables(
             {small_convolution(8, true), small_convolution(8, false)}, Algorithms::Effort::quick))
      for (const Algorithm& one : table.algorithms)
        told[static_cast<size_t>(job.rank())] += one.name + one.refusal + one.pruned +
                                                 std::to_string(one.time ? one.time->total().count : 0) +
                                                 "\n";
  });
  EXPECT_NE(told[0], "");
  EXPECT_EQ(told[0], told[1]);
}

}  // namespace
}  // namespace cortado
