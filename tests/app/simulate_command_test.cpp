#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/app/run_command.h"

namespace cortado {
namespace {

using testing::HasSubstr;

class SimulateCommand : public testing::Test {
 protected:
  void SetUp() override { folder_.write("net.prototxt", small_net()); }
  CommandResult simulate(const std::string& arguments) {
    return run_cortado(folder_.path(),
                       "simulate --model net.prototxt --machine layer-wise-p100 " + arguments);
  }
  nlohmann::json simulated(const std::string& arguments) {
    const CommandResult result = simulate(arguments + " --json t.json");
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return nlohmann::json::parse(folder_.read("t.json"));
  }
  TemporaryFolder folder_;
};

TEST_F(SimulateCommand, TellsAnIterationAndItsLayers) {
  const auto one = simulated("--devices 1 --strategy single");
  EXPECT_EQ(one["step_seconds"], one["single_step_seconds"]);
  EXPECT_EQ(one["bytes_per_iteration"], 0);
  EXPECT_NEAR(one["exposed_communication_seconds"].get<double>(), 0, 1e-12);
  EXPECT_NEAR(one["compute_seconds"].get<double>(), one["step_seconds"].get<double>(), 1e-9);
  const auto four = simulated("--devices 4 --strategy data");
  EXPECT_EQ(four["ranks"], 4);
  EXPECT_EQ(four["single_step_seconds"], one["step_seconds"]);
  EXPECT_GT(four["bytes_per_iteration"], 0);
  EXPECT_GE(four["step_seconds"].get<double>(), four["compute_seconds"].get<double>() * (1 - 1e-9));
  EXPECT_EQ(four["layers"].size(), one["layers"].size());
}

TEST_F(SimulateCommand, TheDefaultStrategyIsPlannedForTheMachine) {
  const auto step = [&](const std::string& strategy) {
    return simulated("--devices 4" + strategy)["step_seconds"].get<double>();
  };
  EXPECT_EQ(step(""), step(" --strategy auto"));
  EXPECT_LT(step(""), step(" --strategy random:1"));
}

TEST_F(SimulateCommand, WritesATraceOfAllRanks) {
  ASSERT_EQ(simulate("--devices 2 --strategy data --trace t.json").exit_code, 0);
  const auto trace = nlohmann::json::parse(folder_.read("t.json"));
  std::map<int, int> steps;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X") ++steps[event["pid"].get<int>()];
  EXPECT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0], steps[1]);
  EXPECT_GT(steps[0], 10);
}

// Eq. 11 of Lee et al. (HiPC 2017) over the steps of rank 0 in the trace.
TEST_F(SimulateCommand, TellsHowMuchOfCommunicationIsHidden) {
  EXPECT_TRUE(simulated("--devices 1 --strategy single")["overlap_ratio_percent"].is_null());
  for (const std::string strategy : {"data", "data --no-late-updates", "owt", "random:2"}) {
    SCOPED_TRACE(strategy);
    const auto json = simulated("--devices 16 --strategy " + strategy + " --trace trace.json");
    double messages = 0, exposed = 0;
    const auto trace = nlohmann::json::parse(folder_.read("trace.json"));
    for (const auto& event : trace["traceEvents"]) {
      if (event["ph"] != "X" || event["pid"] != 0 || event["tid"] == 0 || event["cat"] == "load") continue;
      messages += event["dur"].get<double>();
      exposed += event["args"].value("exposed_us", 0.0);
    }
    ASSERT_GT(messages, 0);
    const double ratio = json["overlap_ratio_percent"];
    EXPECT_NEAR(ratio, 100 * (1 - exposed / messages), 2);  // a rank may begin before others have ended
    if (strategy.ends_with("no-late-updates")) {
      EXPECT_NEAR(ratio, 100 * (1 - exposed / messages), 1e-6);
    }
  }
}

TEST_F(SimulateCommand, WritesAPage) {
  const CommandResult result = simulate("--devices 4 --strategy data --report new/page");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("overlap ratio R "));
  const std::string page = folder_.read("new/page/index.html");
  for (const char* part : {"<!DOCTYPE html>", "Eq. 11", "conv+relu", "rank 3"})
    EXPECT_THAT(page, HasSubstr(part));
}

TEST_F(SimulateCommand, ATunedScheduleIsTheFastestAndCanBeKept) {
  const auto step = [&](const std::string& more) {
    return simulated("--devices 16 " + more)["step_seconds"].get<double>();
  };
  const double tuned = step("--strategy data --tune --keep-cuts --out s.json");
  for (const std::string chunks : {"parameter", "layer", "first:1", "first:2", "one", "1MiB"}) {
    EXPECT_LE(tuned, step("--strategy data --gradient-chunks " + chunks) + 1e-12) << chunks;
    EXPECT_LE(tuned, step("--strategy data --no-late-updates --gradient-chunks " + chunks) + 1e-12) << chunks;
  }
  EXPECT_NEAR(step("--strategy s.json"), tuned, 1e-12);
}

TEST_F(SimulateCommand, TuningTheCutsTooIsNoWorse) {
  const auto step = [&](const std::string& more) {
    return simulated("--devices 4 --strategy data --tune --out s.json " + more)["step_seconds"].get<double>();
  };
  const double kept = step("--keep-cuts");
  EXPECT_LE(step(""), kept);
  EXPECT_EQ(simulated("--devices 4 --strategy s.json")["step_seconds"].get<double>(), step(""));
}

// 64 inputs and 3 outputs of 8 samples are gathered in place of 195 gradients that are summed.
TEST_F(SimulateCommand, ReplicasNeedNotSumGradients) {
  const auto bytes = [&](const std::string& more) {
    return simulated("--devices 2 --strategy data " + more)["bytes_per_iteration"].get<double>();
  };
  EXPECT_EQ(bytes("--replicate score") - bytes(""), 4 * (8 * 64 + 8 * 3) - 2 * 4 * 195);
  EXPECT_EQ(bytes("--replicate 'sc*,conv'"), bytes("--replicate score --replicate conv"));
}

TEST_F(SimulateCommand, RefusesWhatCannotBe) {
  const auto refused = [&](const std::string& arguments, const std::string& message) {
    const CommandResult result = simulate(arguments + " --json t.json");
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_THAT(result.output, HasSubstr(message));
    EXPECT_FALSE(folder_.has("t.json"));
  };
  refused("--devices 1000", "1000");
  refused("--strategy dta", "dta");
  folder_.write("file", "");
  refused("--report file/page", "error: --report file/page: the folder cannot be made: Not a directory\n");
  refused("--report file", "error: --report file: the folder cannot be made: Not a directory\n");
  refused("--report page --strategy dta", "dta");
  EXPECT_FALSE(folder_.has("page"));
  refused("--trace none/t.json", "error: --trace none/t.json: there is no folder 'none'; make it first\n");
  refused("--strategy data --gradient-chunks some", "--gradient-chunks: 'some'");
  refused("--strategy data --replicate cnov", "--replicate: 'cnov' fits no layer");
  refused("--strategy data --tune --tune-seconds -1", "--tune-seconds");
  refused("--strategy data --keep-cuts", "--tune");
  folder_.write("s.json",
                R"({"format": "cortado-strategy", "version": 1, "ranks": 8, "layers": {"*": {"n": 8}}})");
  refused("--devices 4 --strategy s.json", "s.json");
  EXPECT_EQ(run_cortado(folder_.path(), "simulate --model net.prototxt").exit_code, 2);
  EXPECT_EQ(run_cortado(folder_.path(), "simulate --model net.prototxt --machine none.json").exit_code, 2);
}

}  // namespace
}  // namespace cortado
