// `cortado time --algorithms` and `--kernels measured`: what is picked is the fastest measured, kept, and
// runs. `--fast-math` allows algorithms that do not run without it.
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/app/run_command.h"

namespace cortado {
namespace {

using Json = nlohmann::json;

// Two convolutions that are one problem, one that Winograd's algorithm refuses, and one of single positions.
std::string net() {
  const auto convolution = [](const std::string& name, const std::string& bottom,
                              const std::string& options) {
    return "layer { name: '" + name + "' type: 'Convolution' bottom: '" + bottom + "' top: '" + name +
           "' convolution_param { weight_filler { type: 'xavier' } " + options + " } }\n";
  };
  return R"(name: "net"
layer { name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param {
    shape { dim: 4 dim: 12 dim: 12 dim: 12 } shape { dim: 4 }
    data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 1 } } }
)" + convolution("first", "data", "num_output: 16 kernel_size: 3 pad: 1") +
         convolution("second", "first", "num_output: 16 kernel_size: 3 pad: 1") +
         convolution("third", "second", "num_output: 16 kernel_size: 3 pad: 1") +
         convolution("wide", "third", "num_output: 8 kernel_size: 5 stride: 2") +
         convolution("point", "wide", "num_output: 8 kernel_size: 1") + R"(
layer { name: "score" type: "InnerProduct" bottom: "point" top: "score"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
)";
}

class AlgorithmsTest : public ::testing::Test {
 protected:
  // What it measures, it keeps for itself: other programs measure at the same time.
  AlgorithmsTest() {
    folder_.write("net.prototxt", net());
    setenv("CORTADO_CACHE", (folder_.path() + "/cache").c_str(), 1);
  }
  ~AlgorithmsTest() override { unsetenv("CORTADO_CACHE"); }

  CommandResult time(const std::string& options) {
    return run_cortado(folder_.path(), "time --model net.prototxt --threads 2 " + options);
  }
  void expect_runs(const Json& report) {
    const CommandResult result = time("--kernels measured --verbose --iterations 1");
    ASSERT_EQ(result.exit_code, 0) << result.output;
    for (const Json& convolution : report["convolutions"])
      for (const std::string layer : convolution["layers"]) {
        const size_t line = result.output.find("  " + layer);
        ASSERT_NE(line, std::string::npos) << result.output;
        const std::string text = result.output.substr(line, result.output.find('\n', line) - line);
        EXPECT_NE(text.find(convolution["pick"].get<std::string>()), std::string::npos) << text;
      }
  }
  Json algorithms() {
    const CommandResult result = time("--algorithms --json out.json");
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return Json::parse(folder_.read("out.json"), nullptr, false);
  }

  TemporaryFolder folder_;
};

double total_of(const Json& algorithm) {
  return algorithm["forward_seconds"].get<double>() + algorithm["backward_weights_seconds"].get<double>() +
         algorithm["backward_seconds"].get<double>();
}

// What is picked runs; what is measured once is not measured again.
TEST_F(AlgorithmsTest, PicksTheFastestMeasured) {
  const Json report = algorithms();
  EXPECT_EQ(algorithms(), report);
  expect_runs(report);
  ASSERT_EQ(report["convolutions"].size(), 4u) << report.dump(1);
  EXPECT_EQ(report["convolutions"][1]["layers"], Json({"second", "third"}));
  for (const Json& convolution : report["convolutions"]) {
    std::map<std::string, double> totals;
    std::map<std::string, Json> by_name;
    for (const Json& algorithm : convolution["algorithms"]) {
      by_name[algorithm["name"]] = algorithm;
      if (algorithm.contains("forward_seconds")) totals[algorithm["name"]] = total_of(algorithm);
    }
    ASSERT_TRUE(totals.contains("implicit-gemm"));
    const std::string pick = convolution["pick"];
    for (const auto& [name, total] : totals) EXPECT_LE(totals.at(pick), total) << name;
    for (const char* name :
         {"winograd-4x4", "winograd", "onednn", "lowering-1", "lowering-2", "lowering-3"}) {
      ASSERT_TRUE(by_name.contains(name)) << name;
      const Json& algorithm = by_name[name];
      EXPECT_NE(algorithm.contains("refusal") || algorithm.contains("pruned"), totals.contains(name))
          << algorithm;
    }
    EXPECT_FALSE(by_name.contains("reference"));
  }
  const Json& wide = report["convolutions"][2];
  EXPECT_EQ(wide["algorithms"][0]["name"], "winograd-4x4");
  EXPECT_EQ(wide["algorithms"][0]["refusal"], "windows other than 3x3 with stride 1");
  const Json& point = report["convolutions"][3];
  std::map<std::string, Json> pruned;
  for (const Json& algorithm : point["algorithms"])
    if (algorithm.contains("pruned")) pruned[algorithm["name"]] = algorithm["pruned"];
  EXPECT_EQ(pruned["lowering-3"], "the same as lowering-1");
  EXPECT_EQ(pruned["lowering-3-onednn"], "the same as lowering-1-onednn");
}

// Of a net with two convolutions, the second of 5x5 windows.
TEST_F(AlgorithmsTest, TakesFastMathWhereItIsAllowed) {
  std::string one = net();
  const size_t third = one.find("layer { name: 'third'"), score = one.find("\nlayer { name: \"score\"");
  one.erase(third, score - third);
  one.replace(one.find("bottom: \"point\""), 15, "bottom: \"second\"");
  const std::string three = "kernel_size: 3 pad: 1";
  one.replace(one.rfind(three), three.size(), "kernel_size: 5 pad: 2");
  folder_.write("net.prototxt", one);
  const auto kernels = [&](const std::string& options) {
    const CommandResult result = time("--verbose --iterations 1 " + options);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return result.output;
  };
  const std::string larger = "winograd-4x4-of-5x5";
  EXPECT_NE(kernels("--fast-math").find(larger), std::string::npos);
  EXPECT_EQ(kernels("").find(larger), std::string::npos);
  const CommandResult table = time("--algorithms --fast-math");
  EXPECT_NE(table.output.find(larger), std::string::npos) << table.output;
  const CommandResult both = time("--fast-math --kernels onednn");
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_NE(both.output.find("--fast-math: "), std::string::npos) << both.output;
}

TEST_F(AlgorithmsTest, RefusesWhatItDoesNotMeasure) {
  const CommandResult unknown = time("--kernels measred");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.output.find("did you mean 'measured'"), std::string::npos) << unknown.output;
  EXPECT_EQ(unknown.output.find("measuring"), std::string::npos) << unknown.output;
  const CommandResult result = time("--kernels measured --predict");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.output.find("--predict: "), std::string::npos) << result.output;
  EXPECT_FALSE(folder_.has("cache")) << "something was measured first";
}

}  // namespace
}  // namespace cortado
