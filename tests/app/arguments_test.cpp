#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/app/run_command.h"

namespace cortado {
namespace {

class Arguments : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("net.prototxt", small_net());
    folder_.write("solver.prototxt", small_solver());
  }
  CommandResult cortado(const std::string& arguments) { return run_cortado(folder_.path(), arguments); }
  TemporaryFolder folder_;
};

TEST_F(Arguments, CaffesSpellingAndOursMeanTheSame) {
  for (const char* arguments : {"train -solver solver.prototxt -sighup_effect none",
                                "train --solver=solver.prototxt --sighup-effect=none",
                                "train -solver=solver.prototxt --sighup_effect none"}) {
    CommandResult result = cortado(std::string(arguments) + " -set max_iter=1");
    EXPECT_EQ(result.exit_code, 0) << arguments << result.output;
  }
}

TEST_F(Arguments, UnknownOnesAreRefusedWithTheNearest) {
  struct Case {
    std::string arguments, message;
  };
  const Case cases[] = {
      {"trian --solver solver.prototxt",
       "cortado: error: 'cortado' has no command 'trian'; did you mean 'train'?"},
      {"train --sovler solver.prototxt", "'cortado train' has no option --sovler; did you mean '--solver'?"},
      {"train -solver solver.prototxt -sigint_efect stop",
       "has no option --sigint-efect; did you mean '--sigint-effect'?"},
      {"train -solver solver.prototxt stray", "'cortado train' does not take 'stray'"},
      {"train", "--solver is required"},
      {"train -solver solver.prototxt -sigint_effect explode", "--sigint-effect"},
      {"train -solver solver.prototxt --threads 0", "--threads"},
      {"train -solver solver.prototxt --strategy datta", "no strategy 'datta'; did you mean 'data'?"},
      {"train -solver solver.prototxt --ranks 0", "--ranks: 0 is not a whole number from 1 to 10000"},
      {"train -solver solver.prototxt --ranks many", "--ranks"},
      {"train -solver solver.prototxt --gpu all",
       "; or give --cpu-instead or set CORTADO_CPU_INSTEAD=1 in the environment"},
      {"train -solver solver.prototxt --device cuda", "--device cuda: give cpu, gpu, or the number of one"},
      {"train -solver solver.prototxt --device cpu --gpu 0", "--device and --gpu: give one"},
      {"train -solver solver.prototxt --set base_rl=1", "did you mean 'base_lr'?"},
      {"",
       "give a command: train, test, classify, extract, time, verify, plan, machine, simulate, show, data, "
       "convert, device_query, help ("},
  };
  for (const Case& c : cases) {
    CommandResult result = cortado(c.arguments);
    EXPECT_EQ(result.exit_code, 2) << c.arguments << result.output;
    EXPECT_NE(result.output.find(c.message), std::string::npos) << c.arguments << "\n" << result.output;
  }
}

TEST_F(Arguments, HelpIsNoError) {
  EXPECT_EQ(cortado("--version").exit_code, 0);
  EXPECT_EQ(cortado("--help").exit_code, 0);
  CommandResult result = cortado("train --help");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.output.find("--snapshot-format"), std::string::npos) << result.output;
}

// conv: 4 filters of 2x3x3 on 4x4 outputs of 8 images: 2 * 8*16*4 * 18 FLOP.
TEST_F(Arguments, ShowWritesAnOldModelAsACurrentOne) {
  folder_.write("old.prototxt",
                "input: 'data' input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8\n"
                "layers { name: 'c' type: CONVOLUTION bottom: 'data' top: 'c' blobs_lr: 3\n"
                "  convolution_param { num_output: 4 kernel_size: 3 } }\n");
  EXPECT_EQ(cortado("show --model old.prototxt --prototxt new.prototxt").exit_code, 0);
  std::string text = folder_.read("new.prototxt");
  EXPECT_NE(text.find("type: \"Convolution\""), std::string::npos) << text;
  EXPECT_NE(text.find("lr_mult: 3"), std::string::npos) << text;
  EXPECT_EQ(text.find("layers"), std::string::npos) << text;
  EXPECT_EQ(cortado("show --model old.prototxt").output, cortado("show --model new.prototxt").output);
}

TEST_F(Arguments, ShowCountsParametersAndFlops) {
  CommandResult result = cortado("show -model net.prototxt --json show.json --dot net.dot");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  auto json = nlohmann::json::parse(folder_.read("show.json"));
  EXPECT_EQ(json["parameters"], 4 * 2 * 9 + 4 + 3 * 64 + 3);
  EXPECT_EQ(json["batch"], 8);
  for (const auto& layer : json["layers"]) {
    if (layer["name"] != "conv") continue;
    EXPECT_EQ(layer["output"], "8x4x4x4");
    EXPECT_EQ(layer["weights"], "4x2x3x3");
    EXPECT_NEAR(layer["forward_flops"].get<double>(), 2.0 * 8 * 16 * 4 * 18, 8 * 16 * 4);
  }
  EXPECT_EQ(folder_.read("net.dot").find("digraph \"small\""), 0u);
}

TEST_F(Arguments, ShowTellsWhatIsBf16) {
  const std::string f32 = cortado("show --model net.prototxt").output;
  const std::string bf16 = cortado("show --model net.prototxt --precision bf16").output;
  EXPECT_EQ(bf16.find(f32), 0u) << bf16;
  const std::string more = bf16.substr(f32.size());
  EXPECT_THAT(more, ::testing::ContainsRegex("Convolution +outputs and their gradients, weights as kernels"));
  EXPECT_THAT(more, ::testing::ContainsRegex("conv +conv +bf16"));
  EXPECT_THAT(more, ::testing::ContainsRegex("label +[a-z]+ +f32"));
}

TEST_F(Arguments, TimeWritesItsContract) {
  CommandResult result = cortado("time -model net.prototxt --iterations 3 --batch 16 --json time.json");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  auto json = nlohmann::json::parse(folder_.read("time.json"));
  for (const char* key :
       {"step_seconds", "compute_seconds", "communication_seconds", "exposed_communication_seconds",
        "overlap_ratio_percent", "data_wait_seconds", "bytes_per_iteration", "percent_of_peak", "layers"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_GT(json["step_seconds"], 0.0);
  auto iterations = json["iteration_seconds"].get<std::vector<double>>();
  ASSERT_EQ(iterations.size(), 3u);
  std::ranges::sort(iterations);
  EXPECT_EQ(json["step_seconds"], iterations[1]);  // the median
  for (const char* key : {"name", "forward_seconds", "backward_seconds", "communication_seconds", "gflops"}) {
    EXPECT_TRUE(json["layers"][0].contains(key)) << key;
  }
}

TEST_F(Arguments, TimeWritesAPageOrNothing) {
  const std::string time = "time -model net.prototxt --iterations 1 --threads 1 ";
  ASSERT_EQ(cortado(time + "--report page").exit_code, 0);
  EXPECT_NE(folder_.read("page/index.html").find("conv+relu forward: "), std::string::npos);
  folder_.write("file", "");
  const CommandResult refused = cortado(time + "--json time.json --report file/page");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.output,
            "cortado: error: --report file/page: the folder cannot be made: Not a directory\n");
  EXPECT_FALSE(folder_.has("time.json"));
}

}  // namespace
}  // namespace cortado
