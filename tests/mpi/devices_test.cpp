// Ranks of unequal devices in one job, as users run them: the emulated device stands for a GPU.
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/app/run_command.h"

namespace cortado {
namespace {

using testing::HasSubstr;

class Devices : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy_file(CORTADO_SOURCE_DIR "/tests/mpi/train_val.prototxt",
                               folder_.file("net.prototxt"));
    folder_.write("solver.prototxt", R"(net: "net.prototxt" base_lr: 0.01 lr_policy: "step" gamma: 0.5
stepsize: 4 momentum: 0.9 weight_decay: 0.001 max_iter: 8 display: 2 average_loss: 1 test_iter: 2 test_interval: 4
snapshot: 4 snapshot_prefix: "s" random_seed: 7
)");
    folder_.write("unequal.json", R"({"format": "cortado-strategy", "version": 1, "ranks": 2,
    "layers": {"*": {"n": 2, "weights": [3, 1]}, "fc": {"c": 2, "weights": [3, 1]}}})");
    ASSERT_EQ(cortado("data generate shapes_lmdb --samples 60").exit_code, 0);
  }
  // A run that hangs ends with exit code 124.
  CommandResult cortado(const std::string& arguments) {
    return run_cortado(folder_.path(), arguments, "timeout -k 5 300");
  }
  CommandResult train(const std::string& more) {
    return cortado("train --solver solver.prototxt --threads 1 --snapshot-format cortado " + more);
  }
  // The words of an option, with the device that CORTADO_TEST_DEVICE names in place of the emulated one.
  static std::string on_device(std::string words) {
    const char* named = std::getenv("CORTADO_TEST_DEVICE");
    const std::string emulated = "emulated", device = named ? named : emulated;
    for (size_t at = 0; (at = words.find(emulated, at)) != std::string::npos; at += device.size())
      words.replace(at, emulated.size(), device);
    return words;
  }
  std::vector<double> losses(const std::string& file) {
    std::vector<double> values;
    std::istringstream lines(folder_.read(file));
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line);
      if (json.contains("lr")) values.push_back(json["loss"]);
    }
    return values;
  }
  void expect_close(const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4 * std::abs(a[i])) << i;
  }

  TemporaryFolder folder_;
};

TEST_F(Devices, TrainAsOneCpu) {
  ASSERT_EQ(train("--log one.jsonl").exit_code, 0);
  const std::vector<double> expected = losses("one.jsonl");
  ASSERT_EQ(expected.size(), 8u);
  for (const char* how :
       {"--device emulated", "--devices emulated,cpu --strategy unequal.json",
        "--devices cpu,emulated --strategy owt", "--ranks 3 --device emulated --strategy spatial"}) {
    SCOPED_TRACE(how);
    const CommandResult result = train(on_device(std::string("--log other.jsonl ") + how));
    ASSERT_EQ(result.exit_code, 0) << result.output;
    expect_close(expected, losses("other.jsonl"));
  }
}

// The sums of norms are a device's, and those of slices a job's.
TEST_F(Devices, ClipAndScaleByNormsAsOneCpu) {
  for (const char* solver : {"--set clip_gradients=0.5", "--set type=LARS --set base_lr=1"}) {
    SCOPED_TRACE(solver);
    const std::string short_training = std::string(solver) + " --set max_iter=4 --log ";
    ASSERT_EQ(train(short_training + "one.jsonl").exit_code, 0);
    const std::vector<double> expected = losses("one.jsonl");
    for (const char* how : {"--device emulated", "--devices emulated,cpu --strategy unequal.json"}) {
      SCOPED_TRACE(how);
      const CommandResult result = train(on_device(short_training + "other.jsonl " + how));
      ASSERT_EQ(result.exit_code, 0) << result.output;
      expect_close(expected, losses("other.jsonl"));
      std::filesystem::remove(folder_.file("other.jsonl"));
    }
    std::filesystem::remove(folder_.file("one.jsonl"));
  }
}

// By what layers take there, measured.
TEST_F(Devices, ArePlannedAndPredicted) {
  std::filesystem::copy_file(CORTADO_SOURCE_DIR "/tests/mpi/few_tasks.prototxt", folder_.file("net.prototxt"),
                             std::filesystem::copy_options::overwrite_existing);
  for (const char* how : {"--ranks 2 --device emulated", "--devices emulated,cpu"}) {
    SCOPED_TRACE(how);
    const CommandResult trained =
        train(on_device(std::string("--strategy auto --set max_iter=2 --set snapshot=0 ") + how));
    EXPECT_EQ(trained.exit_code, 0) << trained.output;
    EXPECT_THAT(trained.output, HasSubstr("strategy auto: "));
    const CommandResult predicted =
        cortado(on_device(std::string("time --predict --trace t.json --iterations 2 --model net.prototxt "
                                      "--threads 1 --strategy data ") +
                          how));
    EXPECT_EQ(predicted.exit_code, 0) << predicted.output;
    EXPECT_THAT(predicted.output, HasSubstr("predicted"));
    EXPECT_TRUE(std::filesystem::exists(folder_.file("t.json")));
  }
  const CommandResult machine =
      cortado(on_device("machine --json --seconds 1 --threads 1 --devices emulated,cpu"));
  ASSERT_EQ(machine.exit_code, 0) << machine.output;
  EXPECT_THAT(machine.output, HasSubstr("\"weight\""));
}

TEST_F(Devices, ShareOneSnapshotThatTheCpuGoesOnFrom) {
  ASSERT_EQ(train("--log one.jsonl").exit_code, 0);
  std::vector<double> last = losses("one.jsonl");
  last.erase(last.begin(), last.begin() + 4);
  const CommandResult mixed = train(on_device("--devices emulated,cpu --strategy unequal.json"));
  ASSERT_EQ(mixed.exit_code, 0) << mixed.output;
  EXPECT_THAT(mixed.output, HasSubstr(on_device("Use emulated, cpu.")));
  for (const char* how : {"", "--devices cpu,emulated --strategy data"}) {
    SCOPED_TRACE(how);
    std::filesystem::remove(folder_.file("rest.jsonl"));  // a training that goes on goes on with its log
    ASSERT_EQ(
        train(on_device(std::string("--snapshot s_iter_4.safetensors --log rest.jsonl ") + how)).exit_code,
        0);
    expect_close(last, losses("rest.jsonl"));
  }
}

TEST_F(Devices, TestTimeAndVerify) {
  ASSERT_EQ(train("").exit_code, 0);
  const std::string test =
      "test --model net.prototxt --weights s_iter_8.safetensors --iterations 3 --threads 1 ";
  const CommandResult here = cortado(test + "--json here.json"),
                      there = cortado(on_device(
                          test + "--json there.json --devices cpu,emulated --strategy unequal.json"));
  EXPECT_EQ(there.exit_code, 0) << there.output;
  const double loss = nlohmann::json::parse(folder_.read("here.json"))["loss"];
  EXPECT_NEAR(nlohmann::json::parse(folder_.read("there.json"))["loss"].get<double>(), loss, 1e-5 * loss);
  for (const char* command : {"time --iterations 2", "verify --iterations 2"}) {
    const CommandResult done =
        cortado(on_device(std::string(command) + " --model net.prototxt --threads 1 --devices " +
                          "emulated,cpu --strategy unequal.json"));
    EXPECT_EQ(done.exit_code, 0) << done.output;
  }
}

TEST_F(Devices, RefuseWhatDoesNotFit) {
  const CommandResult many = train("--ranks 3 --devices emulated,cpu --strategy data");
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_THAT(many.output, HasSubstr("these are 2 devices, but 3 ranks of the job run on this host"));
  const CommandResult word = train("--devices emulated,cpuu");
  EXPECT_EQ(word.exit_code, 2);
  EXPECT_THAT(word.output, HasSubstr("--devices emulated,cpuu: give a device for each rank of a host"));
}

}  // namespace
}  // namespace cortado
