#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cortado/parallel/strategy.h"

#include "tests/app/run_command.h"

namespace cortado {
namespace {

class PlanCommand : public testing::Test {
 protected:
  void SetUp() override { folder_.write("net.prototxt", small_net()); }
  CommandResult plan(const std::string& arguments) {
    return run_cortado(folder_.path(), "plan --machine layer-wise-p100 " + arguments);
  }
  TemporaryFolder folder_;
};

TEST_F(PlanCommand, WritesAStrategyAndItsFigures) {
  const CommandResult result = plan("--model net.prototxt --devices 4 --out s.json --json plan.json");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("conv + relu"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("optimal: "), std::string::npos) << result.output;
  const Strategy strategy = parse_strategy(folder_.read("s.json"), "s.json");
  EXPECT_EQ(strategy.ranks, 4);
  EXPECT_EQ(strategy.net, "small");
  ASSERT_NE(strategy.find("score"), nullptr);
  const auto json = nlohmann::json::parse(folder_.read("plan.json"));
  EXPECT_TRUE(json["optimal"].get<bool>());
  double sum = 0;
  for (const auto& layer : json["layers"]) {
    sum += layer["compute_seconds"].get<double>() + layer["sync_seconds"].get<double>() +
           layer["transfer_seconds"].get<double>();
  }
  EXPECT_NEAR(sum, json["cost_seconds"].get<double>(), 1e-9);
  for (const char* name : {"single", "data", "model", "owt", "spatial"})
    EXPECT_GE(json["baselines"][name].get<double>(), json["cost_seconds"].get<double>() * (1 - 1e-9)) << name;
}

TEST_F(PlanCommand, WrongInputIsRefused) {
  auto error = [&](const std::string& arguments) {
    const CommandResult result = plan(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_EQ(folder_.count("s.json"), 0);
    return result.output;
  };
  EXPECT_EQ(error("--model net.prototxt --devices 17 --out s.json"),
            "cortado: error: machine 'layer-wise-p100' has 16 devices, 17 cannot be taken; give 1 to 16\n");
  EXPECT_EQ(error("--model net.prototxt --devices 0"),
            "cortado: error: --devices: 0 is not a whole number of 1 or more\n");
  EXPECT_EQ(error("--model net.prototxt --dimensions nk"),
            "cortado: error: --dimensions: there is no dimension 'k'; give letters of ncdhwr\n");
  EXPECT_EQ(error("--devices 2"), "cortado: error: --model is required\n");
  EXPECT_NE(error("--model nets.prototxt").find("nets.prototxt"), std::string::npos);
  EXPECT_EQ(error("--model net.prototxt --out nowhere/s.json").find("cortado: error: cannot write"), 0u);
}

}  // namespace
}  // namespace cortado
