#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "cortado/train/safetensors.h"

#include "tests/app/run_command.h"

namespace cortado {
namespace {

class TrainCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("net.prototxt", small_net());
    folder_.write("solver.prototxt", small_solver());
  }
  CommandResult cortado(const std::string& arguments) { return run_cortado(folder_.path(), arguments); }
  TemporaryFolder folder_;
};

TEST_F(TrainCommand, PrintsCaffesLinesWhenPiped) {
  folder_.write("solver.prototxt", small_solver("test_iter: 2 test_interval: 10"));
  CommandResult result = cortado("train -threads 1 -solver solver.prototxt");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  for (const char* line : {"Iteration 0, Testing net (#0)", "    Test net output #0: accuracy = 1",
                           "    Test net output #1: loss = ", "Iteration 10 (", "/10 iters), loss = ",
                           "    Train net output #0: loss = ", "Iteration 10, lr = 0.05",
                           "Iteration 20, loss = ", "Optimization Done."}) {
    EXPECT_NE(result.output.find(line), std::string::npos) << line << "\n" << result.output;
  }
  EXPECT_TRUE(folder_.has("small_iter_20.caffemodel"));
  EXPECT_TRUE(folder_.has("small_iter_20.solverstate"));
}

// What learns in f32 learns in bf16, on one rank and on two, and goes on in the other precision.
TEST_F(TrainCommand, TrainsInBf16) {
  folder_.write("solver.prototxt", small_solver("test_iter: 2 test_interval: 10"));
  for (const char* ranks : {"", " --ranks 2 --strategy data"}) {
    const CommandResult result =
        cortado(std::string("train --threads 1 --solver solver.prototxt --precision bf16") + ranks);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_NE(result.output.find("Test net output #0: accuracy = 1"), std::string::npos) << result.output;
  }
  const CommandResult further = cortado(
      "train --threads 1 --solver solver.prototxt --set max_iter=22 --snapshot small_iter_20.solverstate");
  EXPECT_EQ(further.exit_code, 0) << further.output;
  EXPECT_EQ(cortado("verify --model net.prototxt --ranks 2 --precision bf16").exit_code, 2);
  const CommandResult wrong = cortado("train --solver solver.prototxt --precision fp16");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.output.find("fp16"), std::string::npos) << wrong.output;
}

// Caffe: --level stands in place of all levels of the training net's state, also where it is not given.
TEST_F(TrainCommand, StatesDecideTheNets) {
  const std::string extra = "layer { name: 'extra' type: 'ReLU' bottom: 'score' top: 'extra' include { ";
  auto has_extra = [&](const std::string& command) {
    const std::string output = cortado(command).output;
    const bool told =
        output.find("Solving small") != std::string::npos || output.find("conv") != std::string::npos;
    EXPECT_TRUE(told) << output;
    return output.find("6 layers") != std::string::npos || output.find("extra") != std::string::npos;
  };
  const std::string train = "train --threads 1 --solver solver.prototxt --set max_iter=1";
  const std::string show = "show --model net.prototxt --phase TRAIN";
  folder_.write("net.prototxt", "state { stage: 's' level: 2 }" + small_net() + extra + "min_level: 1 } }");
  folder_.write("solver.prototxt", small_solver("train_state { level: 1 }"));
  EXPECT_FALSE(has_extra(train));
  EXPECT_TRUE(has_extra(train + " --level 1"));
  EXPECT_FALSE(has_extra(show));
  EXPECT_TRUE(has_extra(show + " --level 1"));

  folder_.write("net.prototxt", "state { stage: 's' }" + small_net() + extra + "stage: 's' stage: 't' } }");
  folder_.write("solver.prototxt", small_solver("train_state { stage: 't' }"));
  EXPECT_TRUE(has_extra(train));
  EXPECT_FALSE(has_extra(show));
  EXPECT_TRUE(has_extra(show + " --stage t"));
}

TEST_F(TrainCommand, WarnsOnceOfFieldsWithoutEffect) {
  folder_.write("net.prototxt",
                small_net() +
                    "layer { name: 'd' type: 'Data' top: 'd' include { stage: 'never' } data_param "
                    "{ crop_size: 5 } }");
  folder_.write("solver.prototxt", small_solver("test_iter: 1 test_iter: 1 test_interval: 10"));
  const std::string warning =
      "warning: net.prototxt:13: layer 'd': data_param.crop_size has no effect, as in Caffe; set it in "
      "transform_param\n";
  for (const char* command : {"train --threads 1 --solver solver.prototxt", "show --model net.prototxt",
                              "test --model net.prototxt --iterations 1 --weights small_iter_20.caffemodel",
                              "time --model net.prototxt --iterations 1"}) {
    const CommandResult result = cortado(command);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    const size_t at = result.output.find(warning);
    ASSERT_NE(at, std::string::npos) << result.output;
    EXPECT_EQ(result.output.find(warning, at + 1), std::string::npos) << result.output;
  }
}

TEST_F(TrainCommand, LogsEachIterationAsJson) {
  ASSERT_EQ(cortado("train --threads 1 --solver=solver.prototxt --log log.jsonl --plot curve.svg").exit_code,
            0);
  std::istringstream log(folder_.read("log.jsonl"));
  std::string line;
  int iterations = 0;
  while (std::getline(log, line)) {
    auto json = nlohmann::json::parse(line);
    if (!json.contains("lr")) continue;
    EXPECT_EQ(json["iteration"], iterations++);
    for (const char* key : {"loss", "seconds", "images_per_second", "communication_seconds",
                            "exposed_communication_seconds", "data_wait_seconds"}) {
      EXPECT_TRUE(json.contains(key)) << key;
    }
  }
  EXPECT_EQ(iterations, 20);
  EXPECT_EQ(folder_.read("curve.svg").find("<svg"), 0u);
}

// The losses of a log, by iteration; later lines count.
std::map<int, double> losses_of(const std::string& log) {
  std::map<int, double> losses;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.contains("lr")) losses[json["iteration"]] = json["loss"];
  }
  return losses;
}

// Everything of a training lies in its folder; it goes on there, and its files train the same again.
TEST_F(TrainCommand, FillsAFolder) {
  folder_.write("solver.prototxt", small_solver("test_iter: 2 test_interval: 5 snapshot: 10"));
  const std::string train = "train --threads 1 --snapshot-format cortado --ranks 2 --solver ";
  const CommandResult first =
      cortado(train + "solver.prototxt --strategy data --set base_lr=0.02 --output out");
  ASSERT_EQ(first.exit_code, 0) << first.output;
  for (const char* file : {"runs.json", "solver.prototxt", "strategy.json", "log.jsonl", "summary.csv",
                           "curve.svg", "small_iter_10.safetensors", "small_iter_20.safetensors"})
    EXPECT_TRUE(folder_.has(std::string("out/") + file)) << file;
  const auto runs = nlohmann::json::parse(folder_.read("out/runs.json"));
  const std::string command = runs["runs"][0]["command"];
  EXPECT_EQ(command, "cortado " + train + "solver.prototxt --strategy data --set base_lr=0.02 --output out");
  EXPECT_EQ(folder_.count("small_iter"), 0) << "snapshots lie in the folder";

  const CommandResult again =
      cortado(train + "out/solver.prototxt --strategy out/strategy.json --output two");
  ASSERT_EQ(again.exit_code, 0) << again.output;
  const auto losses = losses_of(folder_.read("out/log.jsonl"));
  ASSERT_EQ(losses.size(), 20u);
  EXPECT_EQ(losses_of(folder_.read("two/log.jsonl")), losses);

  const std::string summary = folder_.read("out/summary.csv");
  EXPECT_EQ(summary.find("iteration,loss,lr,images_per_second,test accuracy,test loss\n0,,,,"), 0u)
      << summary;
  EXPECT_EQ(std::count(summary.begin(), summary.end(), '\n'), 6) << summary;
  const CommandResult further =
      cortado(train +
              "out/solver.prototxt --strategy data --output out --set max_iter=25 --snapshot "
              "out/small_iter_20.safetensors");
  ASSERT_EQ(further.exit_code, 0) << further.output;
  EXPECT_EQ(losses_of(folder_.read("out/log.jsonl")).size(), 25u);
  const std::string longer = folder_.read("out/summary.csv");
  EXPECT_EQ(longer.find(summary.substr(0, summary.find("\n20,"))), 0u) << longer;
  EXPECT_NE(longer.find("\n25,"), std::string::npos) << longer;
}

TEST_F(TrainCommand, LeavesFoldersOfOthers) {
  folder_.write("solver.prototxt", small_solver());
  std::filesystem::create_directory(folder_.file("mine"));
  folder_.write("mine/notes", "precious");
  for (const char* ranks : {"", " --ranks 2"}) {
    const CommandResult refused =
        cortado(std::string("train --threads 1 --solver solver.prototxt --output mine") + ranks);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_EQ(refused.output,
              "cortado: error: --output mine: is a folder that `cortado train` did not make; give another "
              "name\n");
  }
  EXPECT_EQ(folder_.read("mine/notes"), "precious");
  const CommandResult failed =
      cortado("train --solver solver.prototxt --output new --weights none.caffemodel");
  EXPECT_EQ(failed.exit_code, 2);
  EXPECT_FALSE(folder_.has("new")) << "a training that does not begin leaves no folder";
  const CommandResult both = cortado("train --solver solver.prototxt --output new --log l");
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_EQ(both.output.find("cortado: error: --output, --log and --plot: give"), 0u) << both.output;
}

TEST_F(TrainCommand, TracesTheLastIteration) {
  const std::string train = "train --threads 1 --solver solver.prototxt --set max_iter=3 ";
  ASSERT_EQ(cortado(train + "--trace t.json").exit_code, 0);
  std::map<std::string, int> steps;
  const auto trace = nlohmann::json::parse(folder_.read("t.json"));
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++steps[event["name"]];
    EXPECT_EQ(event["pid"], 0);
  }
  for (const char* step : {"conv+relu forward", "conv+relu backward-weights", "conv/weight update",
                           "score forward", "score backward", "data load"})
    EXPECT_EQ(steps[step], 1) << step;
  const auto refused = cortado(train + "--trace none/t.json --set snapshot_prefix=other");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.output,
            "cortado: error: --trace none/t.json: there is no folder 'none'; make it first\n");
  EXPECT_EQ(folder_.count("other"), 0);
}

// Half the iterations, a snapshot and the other half give bitwise the weights of one run, in every format.
TEST_F(TrainCommand, ResumesBitwise) {
  for (std::string type : {"SGD", "Adam"}) {
    std::string common = "train --threads 1 --solver solver.prototxt --set type=" + type;
    ASSERT_EQ(cortado(common + " --snapshot-format cortado --set snapshot_prefix=whole").exit_code, 0);
    auto whole = read_safetensors(folder_.file("whole_iter_20.safetensors"));
    for (std::string format : {"cortado", "caffe", "hdf5"}) {
      std::string half = common + " --set snapshot_prefix=half --set max_iter=10 --snapshot-format " + format;
      CommandResult first = cortado(half);
      ASSERT_EQ(first.exit_code, 0) << first.output;
      std::string state = format == "cortado" ? ".safetensors"
                          : format == "caffe" ? ".solverstate"
                                              : ".solverstate.h5";
      CommandResult second = cortado(
          common + " --set snapshot_prefix=rest --snapshot-format cortado --snapshot half_iter_10" + state);
      ASSERT_EQ(second.exit_code, 0) << second.output;
      auto rest = read_safetensors(folder_.file("rest_iter_20.safetensors"));
      EXPECT_EQ(whole.tensors, rest.tensors) << type << " " << format;
    }
  }
}

TEST_F(TrainCommand, SameSeedSameWeights) {
  std::string common =
      "train --threads 1 --solver solver.prototxt --snapshot-format cortado --set snapshot_prefix=";
  ASSERT_EQ(cortado(common + "a").exit_code, 0);
  ASSERT_EQ(cortado(common + "b").exit_code, 0);
  ASSERT_EQ(cortado(common + "c --set random_seed=2").exit_code, 0);
  EXPECT_EQ(folder_.read("a_iter_20.safetensors"), folder_.read("b_iter_20.safetensors"));
  EXPECT_NE(folder_.read("a_iter_20.safetensors"), folder_.read("c_iter_20.safetensors"));
}

// The update of two batches of 8 summed by iter_size, with clipping off, moves as their mean: twice the same
// batch (a constant one) gives the weights of one.
TEST_F(TrainCommand, IterSizeOfEqualBatchesChangesNothing) {
  std::string net = small_net();
  net.replace(net.find("type: \"gaussian\" std: 1"), 23, "type: \"constant\" value: 0.5");
  folder_.write("net.prototxt", net);
  std::string common =
      "train --threads 1 --solver solver.prototxt --snapshot-format cortado --set snapshot_prefix=";
  ASSERT_EQ(cortado(common + "once").exit_code, 0);
  ASSERT_EQ(cortado(common + "twice --set iter_size=2").exit_code, 0);
  ASSERT_EQ(cortado(common + "clipped --set clip_gradients=1e9").exit_code, 0);
  auto once = read_safetensors(folder_.file("once_iter_20.safetensors"));
  for (const char* name : {"twice_iter_20.safetensors", "clipped_iter_20.safetensors"}) {
    auto other = read_safetensors(folder_.file(name));
    ASSERT_EQ(once.tensors.size(), other.tensors.size());
    for (size_t t = 0; t < once.tensors.size(); ++t) {
      for (size_t i = 0; i < once.tensors[t].values.size(); ++i) {
        EXPECT_NEAR(once.tensors[t].values[i], other.tensors[t].values[i], 1e-5)
            << name << " " << once.tensors[t].name;
      }
    }
  }
}

TEST_F(TrainCommand, WeightsAreReadFromEveryFormat) {
  ASSERT_EQ(cortado("train --threads 1 --solver solver.prototxt --snapshot-format cortado").exit_code, 0);
  ASSERT_EQ(cortado("train --threads 1 --solver solver.prototxt --snapshot-format caffe").exit_code, 0);
  ASSERT_EQ(cortado("train --threads 1 --solver solver.prototxt --snapshot-format hdf5").exit_code, 0);
  std::string losses[3];
  int index = 0;
  for (const char* file :
       {"small_iter_20.safetensors", "small_iter_20.caffemodel", "small_iter_20.caffemodel.h5"}) {
    CommandResult result =
        cortado("test -model net.prototxt -iterations 3 -log-format plain -weights " + std::string(file));
    ASSERT_EQ(result.exit_code, 0) << result.output;
    losses[index++] = result.output.substr(0, result.output.find("images/s"));
    losses[index - 1].erase(losses[index - 1].rfind('\n'));
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(losses[0], losses[2]);
}

TEST_F(TrainCommand, TellsOfLayersThatOnlyNetOrWeightsHave) {
  ASSERT_EQ(cortado("train --threads 1 --solver solver.prototxt --snapshot-format cortado").exit_code, 0);
  std::string net = small_net();
  for (size_t at; (at = net.find("\"score\"")) != std::string::npos;) net.replace(at, 7, "\"renamed\"");
  folder_.write("net.prototxt", net);
  for (const char* command : {"test --model net.prototxt --iterations 1", "train --solver solver.prototxt"}) {
    CommandResult result = cortado(std::string(command) + " --weights small_iter_20.safetensors");
    EXPECT_NE(result.output.find("layer 'renamed' is not in small_iter_20.safetensors"), std::string::npos)
        << result.output;
    EXPECT_NE(result.output.find("layer 'score' of small_iter_20.safetensors is not in the net"),
              std::string::npos)
        << result.output;
  }
}

// Starts a training that would run for hours, waits for its first snapshot and sends a signal.
class SignalledTraining : public TrainCommand {
 protected:
  int run_and_signal(int signal) {
    folder_.write("solver.prototxt", small_solver("snapshot: 5"));
    remove_snapshots();
    std::string line = "cd '" + folder_.path() +
                       "' && exec " CORTADO_COMMAND
                       " train --threads 1 --solver solver.prototxt --set max_iter=100000000 --set display=0 "
                       "--snapshot-format cortado >out.txt 2>&1";
    pid_t child = fork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      _exit(127);
    }
    for (int i = 0; i < 3000 && folder_.count(".safetensors") < 3; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill(child, signal);
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }

  void remove_snapshots() {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      if (entry.path().filename().string().starts_with("small_iter")) std::filesystem::remove(entry.path());
    }
  }

  // Every snapshot that has its final name can be read; the last one can be gone on from.
  int64_t last_snapshot() {
    int64_t last = -1;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      if (entry.path().extension() != ".safetensors") continue;
      auto metadata = read_safetensors_metadata(entry.path().string());
      EXPECT_NO_THROW(read_safetensors(entry.path().string()));
      last = std::max(last, nlohmann::json::parse(metadata.at("cortado"))["iteration"].get<int64_t>());
    }
    return last;
  }
};

TEST_F(SignalledTraining, StopsWithASnapshotOnInterruptAndTermination) {
  for (int signal : {SIGINT, SIGTERM}) {
    int status = run_and_signal(signal);
    ASSERT_TRUE(WIFEXITED(status)) << folder_.read("out.txt");
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_NE(folder_.read("out.txt").find("Optimization stopped early."), std::string::npos);
    EXPECT_GE(last_snapshot(), 5);
  }
}

TEST_F(SignalledTraining, AKillLeavesTheLastSnapshotLoadable) {
  for (int round = 0; round < 5; ++round) {
    int status = run_and_signal(SIGKILL);
    ASSERT_TRUE(WIFSIGNALED(status)) << folder_.read("out.txt");
    int64_t iteration = last_snapshot();
    ASSERT_GE(iteration, 5);
    std::string name = std::to_string(iteration);
    CommandResult result =
        cortado("train --threads 1 --solver solver.prototxt --snapshot-format cortado --set max_iter=" +
                std::to_string(iteration + 1) + " --snapshot small_iter_" + name + ".safetensors");
    EXPECT_EQ(result.exit_code, 0) << result.output;
  }
}

}  // namespace
}  // namespace cortado
