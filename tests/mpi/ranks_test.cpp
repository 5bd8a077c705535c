#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "cortado/train/safetensors.h"

#include "tests/app/run_command.h"

namespace cortado {
namespace {

using testing::HasSubstr;
using testing::Not;

// `cortado` on ranks, with real data: whatever the ranks and the cut, it does what one rank does.
class Ranks : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy_file(CORTADO_SOURCE_DIR "/tests/mpi/train_val.prototxt",
                               folder_.file("net.prototxt"));
    folder_.write("solver.prototxt", R"(net: "net.prototxt" base_lr: 0.01 lr_policy: "step" gamma: 0.5
stepsize: 4 momentum: 0.9 weight_decay: 0.001 max_iter: 8 display: 2 average_loss: 1 test_iter: 2 test_interval: 4
snapshot_prefix: "s" random_seed: 7
)");
    ASSERT_EQ(cortado("data generate shapes_lmdb --samples 60").exit_code, 0);
  }

  // A run that hangs ends with exit code 124.
  CommandResult cortado(const std::string& arguments, const std::string& launcher = "") {
    return run_cortado(folder_.path(), arguments, "timeout -k 5 300 " + launcher);
  }
  CommandResult train(const std::string& more, const std::string& launcher = "") {
    return cortado("train --solver solver.prototxt --threads 1 --snapshot-format cortado " + more, launcher);
  }

  // What a log tells of the iterations and tests, in order.
  std::vector<double> logged(const std::string& file) {
    std::vector<double> values;
    std::istringstream lines(folder_.read(file));
    for (std::string line; std::getline(lines, line);) {
      auto json = nlohmann::json::parse(line);
      if (json.contains("lr")) values.push_back(json["loss"]);
      if (!json.contains("outputs")) continue;
      for (const auto& output : json["outputs"]) values.push_back(output["value"]);
    }
    return values;
  }

  void expect_close(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance * std::abs(a[i])) << i;
  }

  // Under strategy auto, the default on ranks, with a cache of the test's own.
  CommandResult train_planned() {
    CommandResult result =
        run_cortado(folder_.path(), "train --solver solver.prototxt --threads 1 --ranks 2 --log ranks.jsonl",
                    "CORTADO_CACHE=kept timeout -k 5 300");
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return result;
  }
  // A net of few tasks, where what matters is that they are measured.
  void write_net_of_few_tasks() {
    using std::filesystem::copy_options;
    std::filesystem::copy_file(CORTADO_SOURCE_DIR "/tests/mpi/few_tasks.prototxt",
                               folder_.file("net.prototxt"), copy_options::overwrite_existing);
  }
  std::string kept(const std::string& prefix) const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.file("kept"))) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(prefix)) return "kept/" + name;
    }
    return "";
  }

  const std::string plain_ = CORTADO_PLAIN_LAUNCHER " -n 2 ";
  TemporaryFolder folder_;
};

// The lines without times.
std::string without_times(const std::string& text) {
  std::string kept;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t open = line.find(" ("), close = line.find("iters), ");
    if (close != std::string::npos) line.erase(open, close + 6 - open);
    kept += line + "\n";
  }
  return kept;
}

TEST_F(Ranks, TrainLikeOneRankUnderEveryStrategyAndLauncher) {
  CommandResult one = train("--log one.jsonl");
  ASSERT_EQ(one.exit_code, 0) << one.output;
  const std::vector<double> expected = logged("one.jsonl");
  ASSERT_EQ(expected.size(), 8u + 3 * 2);  // losses of 8 iterations; two values of the tests at 0, 4 and 8
  const std::string whole = folder_.read("s_iter_8.safetensors");
  folder_.write("mixed.json",
                R"({"format": "cortado-strategy", "version": 1, "net": "tiny_shapes", "ranks": 3,
    "layers": {"*": {"n": 3}, "conv1": {"h": 3}, "norm1": {"n": 2, "devices": [2, 0]},
    "conv2": {"r": 2, "devices": [1, 2]}, "fc": {"c": 3}, "drop": {"c": 2},
    "score": {"n": 3, "sync": "owner"}, "loss": {"n": 1, "devices": [1]}}})");
  for (const char* how :
       {"--ranks 2 --strategy data", "--ranks 3 --strategy model", "--ranks 2 --strategy owt",
        "--ranks 2 --strategy spatial", "--ranks 3 --strategy mixed.json", "--ranks 2 --strategy single"}) {
    SCOPED_TRACE(how);
    CommandResult result = train(std::string("--log ranks.jsonl ") + how);
    ASSERT_EQ(result.exit_code, 0) << result.output;
    expect_close(expected, logged("ranks.jsonl"), 1e-4);
  }
  CommandResult plain = train("--log plain.jsonl", plain_);
  ASSERT_EQ(plain.exit_code, 0) << plain.output;
  expect_close(expected, logged("plain.jsonl"), 1e-4);
}

// Files are equal to the last byte; the snapshot of two ranks goes on on three.
TEST_F(Ranks, ReproducibleTrainingsWriteTheSameBytes) {
  const auto weights = [&](const std::string& how, const std::string& set = "") {
    const CommandResult result =
        cortado("train --solver solver.prototxt --snapshot-format cortado --reproducible " + how +
                (set.empty() ? "" : " --set " + set));
    EXPECT_EQ(result.exit_code, 0) << how << ": " << result.output;
    return folder_.read("s_iter_8.safetensors");
  };
  const std::string one = weights("--threads 1");
  EXPECT_TRUE(weights("--threads 2") == one);
  EXPECT_TRUE(weights("--ranks 2 --threads 2") == one);
  EXPECT_TRUE(weights("--ranks 2 --threads 1 --strategy owt") == one);
  weights("--ranks 2 --threads 1", "snapshot=4");
  EXPECT_TRUE(weights("--ranks 3 --threads 1 --snapshot s_iter_4.safetensors") == one);
  const CommandResult refused = train("--reproducible --ranks 2 --strategy auto");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.output, HasSubstr("--reproducible: --strategy auto"));
  EXPECT_THAT(train("--reproducible --kernels measured").output, HasSubstr("--reproducible: the net alone"));
}

// Costs are measured once and kept; what is kept and broken, or of elsewhere, is told and measured anew.
TEST_F(Ranks, AutoPlansAndTrainsLikeOneRank) {
  write_net_of_few_tasks();
  ASSERT_EQ(train("--log one.jsonl").exit_code, 0);
  const std::vector<double> expected = logged("one.jsonl");
  auto planned = [&](const std::string& line) {
    const CommandResult result = train_planned();
    expect_close(expected, logged("ranks.jsonl"), 1e-4);
    EXPECT_THAT(result.output,
                testing::ContainsRegex("strategy auto: .*; [0-9.]+x faster than data, [0-9.]+x than owt"));
    EXPECT_THAT(result.output, HasSubstr(line));
  };
  planned(" tasks measured)\n");
  const std::string times = kept("tasks-");
  const std::string good = folder_.read(times);
  ASSERT_THAT(good, HasSubstr("cortado-task-times"));
  planned(" s (");  // "(cached)", unless the links are found changed
  // What stands before the tasks; there may be more of them where the links were found changed.
  const size_t head = good.find("\"tasks\"");
  EXPECT_EQ(folder_.read(times).substr(0, head), good.substr(0, head));
  std::string foreign = good;
  const size_t machine = foreign.find("\"machine\": \"");
  foreign.insert(machine + 12, "Another ");
  folder_.write(times, foreign);
  planned(times + ": machine: 'Another ");
}

// Under cuts with halos, of weights and as planned: replicas of weights lie alike.
TEST_F(Ranks, MeasuredKernelsTrainLikeThoseOfTheList) {
  write_net_of_few_tasks();
  const CommandResult one = train("--ranks 1 --log one.jsonl");
  ASSERT_EQ(one.exit_code, 0) << one.output;
  for (const std::string strategy : {"spatial", "auto"}) {
    const CommandResult result =
        train("--ranks 2 --verbose --kernels measured --log two.jsonl --strategy " + strategy);
    ASSERT_EQ(result.exit_code, 0) << strategy << ": " << result.output;
    EXPECT_THAT(result.output, HasSubstr("Kernels of the training net"));
    expect_close(logged("one.jsonl"), logged("two.jsonl"), 1e-3);
  }
}

TEST_F(Ranks, PlansForThisMachineAndPredicts) {
  CommandResult result =
      cortado("plan --model net.prototxt --machine local --devices 2 --threads 1 --out s.json --json p.json");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  auto plan = nlohmann::json::parse(folder_.read("p.json"));
  for (const auto& [name, baseline] : plan["baselines"].items())
    EXPECT_GE(baseline["cost_seconds"].get<double>(), plan["cost_seconds"].get<double>() * (1 - 1e-9))
        << name;
  result = cortado(
      "time --model net.prototxt --threads 1 --ranks 2 --strategy s.json --iterations 3 --predict "
      "--predict-out m.json --json t.json");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("predicted / measured"));
  auto prediction = nlohmann::json::parse(folder_.read("t.json"))["prediction"];
  double sum = 0;
  for (const auto& layer : prediction["layers"]) {
    for (const auto& [key, value] : layer.items())
      if (key.ends_with("_predicted_seconds")) sum += value.get<double>();
  }
  EXPECT_NEAR(sum, prediction["step_seconds"].get<double>(), 1e-9);
  EXPECT_GT(prediction["overlapped_step_seconds"].get<double>(), 0);
  EXPECT_LE(prediction["overlapped_step_seconds"].get<double>(),
            4 * sum);  // twice, were the ranks to take turns
  result = cortado("plan --model net.prototxt --machine m.json");
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

// Four ranks of a machine that is not there, whose messages are sent all the same.
TEST_F(Ranks, WaitForTheTimesOfAnotherMachine) {
  const std::string time = "time --model net.prototxt --threads 1 --ranks 4 --strategy data --iterations 2 ";
  auto result = cortado(time + "--compute model --machine layer-wise-p100 --json t.json");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto report = nlohmann::json::parse(folder_.read("t.json"));
  EXPECT_GT(report["bytes_per_iteration"].get<double>(), 0);
  const auto refused = [&](const std::string& arguments, const std::string& told) {
    const auto refusal = cortado(time + arguments);
    EXPECT_EQ(refusal.exit_code, 2) << refusal.output;
    EXPECT_THAT(refusal.output, HasSubstr(told));
  };
  refused("--compute model", "--compute model: give the machine");
  refused("--machine lassen", "--machine: goes with --compute model");
  refused("--compute model --machine lassen --predict", "leave it out");
}

TEST_F(Ranks, ATraceOfATrainingHasAllRanks) {
  ASSERT_EQ(train("--set max_iter=3 --ranks 2 --strategy data --trace t.json").exit_code, 0);
  std::map<int, int> slices, sums;
  const auto trace = nlohmann::json::parse(folder_.read("t.json"));
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++slices[event["pid"].get<int>()];
    if (event["cat"] == "sum-gradient") ++sums[event["pid"].get<int>()];
  }
  EXPECT_EQ(slices.size(), 2u);
  EXPECT_GT(slices[0], 10);
  EXPECT_GT(sums[0], 0);
  EXPECT_EQ(sums[0], sums[1]);
}

TEST_F(Ranks, OnlyRank0PrintsAndItsLinesAreThoseOfOneRank) {
  CommandResult one = train("--set display=4 --set max_iter=4 --log-format plain");
  CommandResult three =
      train("--set display=4 --set max_iter=4 --log-format plain --ranks 3 --strategy model");
  ASSERT_EQ(three.exit_code, 0) << three.output;
  EXPECT_EQ(without_times(one.output).size(), without_times(three.output).size())
      << one.output << three.output;
  for (const char* line : {"Solving tiny_shapes", "Iteration 4, Testing net (#0)",
                           "Snapshotting solver state", "Optimization Done."}) {
    const size_t at = three.output.find(line);
    EXPECT_NE(at, std::string::npos) << line << "\n" << three.output;
    EXPECT_EQ(three.output.find(line, at + 1), std::string::npos) << line << "\n" << three.output;
  }
}

// A rank's output is a terminal, the job's is none, as OpenMPI's are.
TEST_F(Ranks, PrintLinesWhereOnlyTheLauncherGivesThemATerminal) {
  folder_.write("typed.sh", "exec script -qec \"$*\" /dev/null\n");
  folder_.write("launch.sh", "#!/bin/sh\nranks=$2\nshift 2\nexec " CORTADO_RANK_LAUNCHER
                             " -n $ranks sh typed.sh \"$@\"\n");
  std::filesystem::permissions(folder_.file("launch.sh"), std::filesystem::perms::owner_all);
  const CommandResult result = train("--set max_iter=2 --ranks 2 --strategy data --launch ./launch.sh");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("Iteration 0, Testing net (#0)"));
  EXPECT_THAT(result.output, Not(HasSubstr("\x1b")));
}

TEST_F(Ranks, SnapshotsResumeUnderOtherStrategiesAndRanks) {
  ASSERT_EQ(train("--set max_iter=12 --log one.jsonl").exit_code, 0);
  auto whole = read_safetensors(folder_.file("s_iter_12.safetensors"));
  std::filesystem::remove(folder_.file("s_iter_12.safetensors"));
  const char* steps[] = {"--set max_iter=3",
                         "--set max_iter=6 --ranks 2 --strategy data --snapshot s_iter_3.safetensors",
                         "--set max_iter=9 --ranks 3 --strategy model --snapshot s_iter_6.safetensors",
                         "--set max_iter=12 --snapshot s_iter_9.safetensors"};
  for (const char* step : steps) {
    CommandResult result = train(std::string("--log steps.jsonl ") + step);
    ASSERT_EQ(result.exit_code, 0) << step << "\n" << result.output;
  }
  expect_close(logged("one.jsonl"), logged("steps.jsonl"), 1e-4);
  auto rest = read_safetensors(folder_.file("s_iter_12.safetensors"));
  ASSERT_EQ(whole.tensors.size(), rest.tensors.size());
  for (size_t t = 0; t < whole.tensors.size(); ++t) {
    EXPECT_EQ(whole.tensors[t].name, rest.tensors[t].name);
    for (size_t i = 0; i < whole.tensors[t].values.size(); ++i)
      ASSERT_NEAR(whole.tensors[t].values[i], rest.tensors[t].values[i], 1e-4) << whole.tensors[t].name;
  }
}

// The signal comes to the parent while the ranks train.
TEST_F(Ranks, AnInterruptStopsAllWithASnapshot) {
  folder_.write("interrupt.sh", std::string("rm -f s_iter*\n") + CORTADO_COMMAND +
                                    " train --solver solver.prototxt --threads 1 --set max_iter=100000000 "
                                    "--set display=0 --set snapshot=5 --set test_interval=0 "
                                    "--snapshot-format cortado --ranks 2 --strategy data &\n"
                                    "for i in $(seq 600); do [ -e s_iter_5.safetensors ] && break; sleep "
                                    "0.1; done\nkill -INT $!\nwait $!\n");
  CommandResult result = run_cortado(folder_.path(), "", "timeout -k 5 300 bash interrupt.sh; true ||");
  EXPECT_THAT(result.output, HasSubstr("Optimization stopped early."));
  EXPECT_THAT(result.output, Not(HasSubstr("error")));
  ASSERT_THAT(result.output, HasSubstr("Snapshotting solver state to "));
  std::string last = result.output.substr(result.output.rfind("Snapshotting solver state to "));
  last = last.substr(29, last.find('\n') - 29);
  CommandResult resumed =
      train("--ranks 2 --strategy data --snapshot " + last + " --set test_interval=0 --set max_iter=1");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("Resuming from " + last));
}

// A script that trains on ranks in the background and, while it does, does `then` with the process ids of the
// first rank ($0), the last ($1) and of the launcher's process that started it ($2).
std::string while_training(const std::string& options, const std::string& then) {
  return "rm -f s_iter*\n" CORTADO_COMMAND
         " train --solver solver.prototxt --threads 1 --set display=0 --set snapshot=5 --set test_interval=0 "
         "--snapshot-format cortado --strategy data " +
         options +
         " &\njob=$!\nfor i in $(seq 600); do [ -e s_iter_10.safetensors ] && break; sleep 0.1; done\n"
         "for process in /proc/[0-9]*; do\n"
         "  [ \"$(readlink $process/cwd)\" = \"$PWD\" ] && [ \"$(cat $process/comm)\" = cortado ] || "
         "continue\n"
         "  rank=$(tr '\\0' '\\n' <$process/environ | sed -nE 's/^(PMI_RANK|OMPI_COMM_WORLD_RANK)=//p')\n"
         "  [ \"$rank\" = 0 ] && rank0=${process#/proc/}\n  [ \"$rank\" = 1 ] && rank1=${process#/proc/}\n"
         "done\nproxy=$(sed -n 's/^PPid:\\s*//p' /proc/$rank1/status)\n" +
         then +
         "\nfor i in $(seq 600); do kill -0 $job 2>/dev/null || break; sleep 0.1; done\n"
         "kill -KILL $job $rank0 $rank1 2>/dev/null\nwait $job\necho \"exit $?\"\n";
}

TEST_F(Ranks, ARankThatIsStoppedForGoodEndsTheJob) {
  folder_.write("stop.sh",
                while_training("--set max_iter=100000000 --ranks 3 --stall-timeout 3", "kill -STOP $rank1"));
  const CommandResult result = run_cortado(folder_.path(), "", "timeout -k 5 300 bash stop.sh; true ||");
  EXPECT_THAT(result.output, HasSubstr("exit 3\n"));
  EXPECT_THAT(
      result.output,
      testing::ContainsRegex("cortado: error: rank 1 on [^ ]+ .pid [0-9]+. has not answered for 3 s .last "
                             "iteration [0-9]+.; ranks? [02].* waits? for it in .*; the job was stopped; "
                             "resume with --snapshot s_iter_[0-9]+.safetensors\n"));
}

TEST_F(Ranks, ARankThatIsStoppedForAMomentChangesNothing) {
  ASSERT_EQ(
      train("--set max_iter=400 --set test_interval=0 --strategy data --ranks 2 --log one.jsonl").exit_code,
      0);
  folder_.write("stop.sh", while_training("--set max_iter=400 --ranks 2 --stall-timeout 3 --log two.jsonl",
                                          "kill -STOP $rank1; sleep 1; kill -CONT $rank1"));
  const CommandResult result = run_cortado(folder_.path(), "", "timeout -k 5 300 bash stop.sh; true ||");
  EXPECT_THAT(result.output, HasSubstr("exit 0\n"));
  EXPECT_EQ(logged("one.jsonl"), logged("two.jsonl"));
}

TEST_F(Ranks, TheEndOfTheProcessThatStartedThemEndsTheJob) {
  folder_.write("kill.sh", while_training("--set max_iter=100000000 --ranks 2", "kill -KILL $proxy"));
  const CommandResult result = run_cortado(folder_.path(), "", "timeout -k 5 300 bash kill.sh; true ||");
  EXPECT_THAT(result.output, HasSubstr("exit 3\n"));
  EXPECT_THAT(
      result.output,
      testing::ContainsRegex("cortado: error: the launcher.* .last iteration [0-9]+.; the job was stopped; "
                             "resume with --snapshot s_iter_[0-9]+.safetensors\n"));
  // The newest that is there, or the one before: a rank may end after it has written one and before it says
  // so.
  const size_t at = result.output.find("s_iter_", result.output.find("resume with"));
  const int told = std::stoi(result.output.substr(at + 7));
  EXPECT_EQ(folder_.count(fmt::format("s_iter_{}.safetensors", told)), 1);
  EXPECT_EQ(folder_.count(fmt::format("s_iter_{}.safetensors", told + 10)), 0);
  EXPECT_THAT(result.output, Not(HasSubstr("[mpiexec@")));
}

TEST_F(Ranks, TestScoresAsOneRank) {
  ASSERT_EQ(train("--set test_interval=0 --set max_iter=4").exit_code, 0);
  const std::string command =
      "test --model net.prototxt --threads 1 --weights s_iter_4.safetensors "
      "--iterations 3 --json ";
  ASSERT_EQ(cortado(command + "one.json").exit_code, 0);
  auto one = nlohmann::json::parse(folder_.read("one.json"));
  for (const char* how : {" --ranks 2 --strategy data", " --ranks 3 --strategy model"}) {
    CommandResult result = cortado(command + "ranks.json" + how);
    ASSERT_EQ(result.exit_code, 0) << result.output;
    auto ranks = nlohmann::json::parse(folder_.read("ranks.json"));
    EXPECT_NEAR(ranks["loss"].get<double>(), one["loss"].get<double>(), 1e-4);
    EXPECT_NEAR(ranks["outputs"][0]["value"].get<double>(), one["outputs"][0]["value"].get<double>(), 1e-4);
  }
}

// The sums of gradients alone move 2 * (P - 1) / P of the 4 bytes of each parameter per rank.
TEST_F(Ranks, TimeTellsTheBytesSent) {
  CommandResult result =
      cortado("time --model net.prototxt --iterations 3 --ranks 2 --strategy data --json time.json");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  auto json = nlohmann::json::parse(folder_.read("time.json"));
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_GT(json["communication_seconds"], 0.0);
  ASSERT_EQ(cortado("show --model net.prototxt --json show.json").exit_code, 0);
  const double parameters = nlohmann::json::parse(folder_.read("show.json"))["parameters"];
  EXPECT_GE(json["bytes_per_iteration"], 2 * 4 * parameters * 0.9);
}

// Both ranks meet the broken record under `model`, one of them under `data`: it is counted once.
TEST_F(Ranks, ARecordThatIsSkippedCountsOnce) {
  const std::string good = CORTADO_SOURCE_DIR "/tests/data/images/rgb.png";
  folder_.write("broken.jpg", "\xff\xd8\xff\xe0 this is no photograph");
  folder_.write("list.txt", good + " 0\n" + good + " 1\n" + good + " 2\nbroken.jpg 3\n");
  std::string net = small_net();
  const size_t begin = net.find("layer { name: \"data\""), end = net.find("layer { name: \"conv\"");
  net.replace(begin, end - begin,
              "layer { name: \"data\" type: \"ImageData\" top: \"data\" top: \"label\"\n"
              "  image_data_param { source: \"list.txt\" batch_size: 4 new_height: 6 new_width: 6 "
              "skip_corrupt: true } }\n");
  folder_.write("net.prototxt", net);
  folder_.write("solver.prototxt", small_solver());
  for (const char* how : {"", " --ranks 2 --strategy data", " --ranks 2 --strategy model"}) {
    CommandResult result = train(std::string("--set max_iter=2") + how);
    ASSERT_EQ(result.exit_code, 0) << result.output;
    EXPECT_THAT(result.output, HasSubstr("Broken records skipped: 1\n")) << how;
  }
}

}  // namespace
}  // namespace cortado
