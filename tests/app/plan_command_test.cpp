#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cortado/parallel/strategy.h"

#include "tests/app/run_command.h"

namespace cortado {
namespace {

// A net that is worth cutting.
std::string large_net() {
  return R"(name: "large"
layer { name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param { shape { dim: 64 dim: 32 dim: 32 dim: 32 } shape { dim: 64 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 128 kernel_size: 3 pad: 1 } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "conv2" type: "Convolution" bottom: "conv1" top: "conv2"
  convolution_param { num_output: 128 kernel_size: 3 pad: 1 } }
layer { name: "score" type: "InnerProduct" bottom: "conv2" top: "score" inner_product_param { num_output: 10 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
)";
}

class PlanCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("net.prototxt", small_net());
    folder_.write("large.prototxt", large_net());
  }
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
  for (const char* name :
       {"single", "data", "model", "owt", "spatial", "replicated", "server", "best-of-each"}) {
    const auto& baseline = json["baselines"][name];
    EXPECT_GE(baseline["cost_seconds"].get<double>(), json["cost_seconds"].get<double>() * (1 - 1e-9))
        << name;
    EXPECT_TRUE(baseline["fits"].get<bool>()) << name;
    EXPECT_NE(result.output.find(std::string(name) + ": "), std::string::npos) << result.output;
  }
  EXPECT_FALSE(json.contains("frontier"));
}

TEST_F(PlanCommand, WritesAPage) {
  const CommandResult result =
      plan("--model net.prototxt --devices 2 --report new/page --frontier --json plan.json");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("time and memory"), std::string::npos) << result.output;
  const std::string page = folder_.read("new/page/index.html");
  for (const char* part :
       {"<!DOCTYPE html>", "conv + relu", "Time against memory", "best-of-each", "</html>"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_GE(nlohmann::json::parse(folder_.read("plan.json"))["frontier"].size(), 1u);
}

TEST_F(PlanCommand, ThePageTellsTheCommandAndWhatToDo) {
  folder_.write("my net.prototxt", large_net());
  const CommandResult result =
      plan("-model 'my net.prototxt' --devices 4 --dimensions n --out \"it's.json\" --report page");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const std::string page = folder_.read("page/index.html");
  EXPECT_NE(
      page.find("<code>cortado plan --machine layer-wise-p100 -model &#39;my net.prototxt&#39; --devices 4 "
                "--dimensions n --out &#39;it&#39;\\&#39;&#39;s.json&#39; --report page</code>"),
      std::string::npos)
      << page.substr(page.find("<footer>"));
  EXPECT_LT(page.find("<h1>large</h1>\n<p class=\"advice\">Tr"), page.find("class=\"tiles\""));
  ASSERT_EQ(plan("--model net.prototxt --devices 1 --report one").exit_code, 0);
  EXPECT_NE(folder_.read("one/index.html").find("Train without --strategy: on one device"),
            std::string::npos);
}

TEST_F(PlanCommand, MemoryLimitsThePlan) {
  ASSERT_EQ(plan("--model large.prototxt --devices 4 --json free.json").exit_code, 0);
  const auto free = nlohmann::json::parse(folder_.read("free.json"));
  // A little more than the plan needs changes nothing; baselines that need more are told.
  const double gib = 1.001 * free["memory_bytes"].get<double>() / (1 << 30);
  const CommandResult same =
      plan(fmt::format("--model large.prototxt --devices 4 --json same.json --memory {:.9f}", gib));
  ASSERT_EQ(same.exit_code, 0) << same.output;
  const auto json = nlohmann::json::parse(folder_.read("same.json"));
  EXPECT_EQ(json["layers"], free["layers"]);
  EXPECT_FALSE(json["limited_by_memory"].get<bool>());
  EXPECT_FALSE(json["baselines"]["single"]["fits"].get<bool>());
  EXPECT_NE(same.output.find("does not fit: needs "), std::string::npos) << same.output;
}

TEST_F(PlanCommand, CountsTheSolversHistory) {
  const auto single = [&](int history) {
    EXPECT_EQ(plan(fmt::format("--model large.prototxt --devices 1 --history {} --json out.json", history))
                  .exit_code,
              0);
    return nlohmann::json::parse(folder_.read("out.json"))["memory_bytes"].get<double>();
  };
  const double one = single(1), two = single(2);
  ASSERT_EQ(plan("--model large.prototxt --devices 1 --json out.json").exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(folder_.read("out.json"))["memory_bytes"].get<double>(), one);
  EXPECT_GT(two, one);
}

TEST_F(PlanCommand, TellsWhatWouldFit) {
  ASSERT_EQ(plan("--model large.prototxt --devices 2 --json two.json").exit_code, 0);
  const double two =
      nlohmann::json::parse(folder_.read("two.json"))["memory_bytes"].get<double>() / (1 << 30);
  const CommandResult result =
      plan(fmt::format("--model large.prototxt --devices 1 --memory {:.9f} --out s.json --report page", two));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(folder_.count("s.json") + folder_.count("page"), 0);
  EXPECT_NE(result.output.find("net 'large' on 1 device of machine 'layer-wise-p100': needs "),
            std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find("; it fits on 2 devices, or with a batch of "), std::string::npos)
      << result.output;
  EXPECT_NE(plan("--model large.prototxt --memory 0.000001").output.find("it fits neither on all 16 devices"),
            std::string::npos);
}

TEST_F(PlanCommand, StrategiesAreForTheNetTheyWerePlannedFor) {
  ASSERT_EQ(plan("--model net.prototxt --devices 1 --out s.json").exit_code, 0);
  const std::string time = "time --model net.prototxt --iterations 1 --threads 1 --strategy s.json";
  EXPECT_EQ(run_cortado(folder_.path(), time).exit_code, 0);
  const CommandResult other = run_cortado(folder_.path(), time + " --batch 4");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.output.find("layer 'conv' was 'Convolution 8x4x4x4, weight 4x2x3x3, bias 4', here it is "
                              "'Convolution 4x4x4x4"),
            std::string::npos)
      << other.output;
}

TEST_F(PlanCommand, SweepsDevicesBatchesAndLinks) {
  folder_.write("m.json", R"({"format": "cortado-machine", "version": 1, "name": "rented",
    "nodes": [{"count": 4, "devices": [{"gflops": 1000, "memory_bandwidth_gb_per_s": 100, "memory_gib": 16}],
               "nic_bandwidth_gb_per_s": 1, "price_per_hour": 1.5}],
    "network": {"latency_us": 10, "bandwidth_gb_per_s": 1}})");
  const CommandResult result = run_cortado(
      folder_.path(),
      "plan --model large.prototxt --machine m.json --sweep devices=1..4 batch=64,32/device link=1,4 "
      "--json sweep.json --csv sweep.csv --report page");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto json = nlohmann::json::parse(folder_.read("sweep.json"));
  ASSERT_EQ(json["points"].size(), 12u);
  for (const auto& point : json["points"]) {
    EXPECT_EQ(point["price_per_hour"], 1.5 * point["devices"].get<int>());
    const double seconds = point["iteration_seconds"];
    EXPECT_NEAR(point["images_per_second"].get<double>(), point["batch"].get<double>() / seconds, 1e-6);
    EXPECT_NEAR(point["compute_seconds"].get<double>() + point["exchange_seconds"].get<double>() +
                    point["sync_seconds"].get<double>(),
                seconds, 1e-9 * seconds);
    EXPECT_TRUE(point["simulated"].get<bool>());
  }
  // One point is the simulation of the plan for it.
  ASSERT_EQ(run_cortado(folder_.path(),
                        "plan --model large.prototxt --machine m.json --devices 4 --batch 128 --out s.json")
                .exit_code,
            0);
  ASSERT_EQ(run_cortado(folder_.path(),
                        "simulate --model large.prototxt --machine m.json --devices 4 --batch 128 "
                        "--strategy s.json --json sim.json")
                .exit_code,
            0);
  const auto& point = json["points"][8];
  EXPECT_EQ(point["devices"], 4);
  EXPECT_EQ(point["batch"], 128);
  EXPECT_EQ(point["bandwidth_gb_per_s"], 1);
  EXPECT_NEAR(point["iteration_seconds"].get<double>(),
              nlohmann::json::parse(folder_.read("sim.json"))["step_seconds"].get<double>(), 1e-9);
  const std::string csv = folder_.read("sweep.csv");
  EXPECT_EQ(std::ranges::count(csv, '\n'), 13) << csv;
  for (const char* part :
       {"bound by", "a million images", "network GB/s", "Take ", "fits on 1 device or more"})
    EXPECT_NE(result.output.find(part), std::string::npos) << part << result.output;
  EXPECT_NE(folder_.read("page/index.html").find("Which link would pay"), std::string::npos);
}

TEST_F(PlanCommand, SimulatesPointsOfAsManyDevicesAsAsked) {
  ASSERT_EQ(plan("--model net.prototxt --sweep devices=1..4 --most-simulated 2 --json sweep.json").exit_code,
            0);
  const auto json = nlohmann::json::parse(folder_.read("sweep.json"));
  ASSERT_EQ(json["points"].size(), 3u);
  for (const auto& point : json["points"]) EXPECT_EQ(point["simulated"], point["devices"] <= 2) << point;
}

TEST_F(PlanCommand, WrongSweepsAreRefused) {
  const auto error = [&](const std::string& arguments) {
    const CommandResult result = plan("--model net.prototxt " + arguments);
    EXPECT_EQ(result.exit_code, 2) << result.output;
    return result.output;
  };
  EXPECT_EQ(
      error("--sweep devices=2..32"),
      "cortado: error: sweep devices=2..32: '32' is not a number of devices of machine 'layer-wise-p100'; "
      "give 1 to 16\n");
  EXPECT_NE(error("--sweep devices=2 --out s.json").find("--out"), std::string::npos);
  EXPECT_NE(error("--sweep devices=2 --frontier").find("--frontier"), std::string::npos);
  EXPECT_NE(error("--csv f.csv").find("--sweep"), std::string::npos);
  EXPECT_NE(error("--most-simulated 4").find("--sweep"), std::string::npos);
  EXPECT_NE(error("--sweep").find("--sweep"), std::string::npos);
  const CommandResult local =
      run_cortado(folder_.path(), "plan --model net.prototxt --machine local --sweep devices=1");
  EXPECT_EQ(local.exit_code, 2);
  EXPECT_EQ(folder_.count("f.csv") + folder_.count("s.json"), 0);
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
            "cortado: error: --devices: 0 is not a whole number from 1 to 10000\n");
  EXPECT_EQ(error("--model net.prototxt --dimensions nk"),
            "cortado: error: --dimensions: there is no dimension 'k'; give letters of ncdhwr\n");
  EXPECT_EQ(error("--devices 2"), "cortado: error: --model is required\n");
  EXPECT_NE(error("--model nets.prototxt").find("nets.prototxt"), std::string::npos);
  EXPECT_EQ(error("--model net.prototxt --batch 0"),
            "cortado: error: --batch: 0 is not a whole number from 1 to 1000000000\n");
  for (const char* memory : {"0", "-1", "nan", "much"}) {
    EXPECT_EQ(
        error(std::string("--model net.prototxt --memory ") + memory),
        std::string("cortado: error: --memory: ") + memory + " is not a number from 1e-06 to 1000000\n");
  }
  folder_.write("file", "");
  EXPECT_EQ(error("--model net.prototxt --out s.json --report file/page"),
            "cortado: error: --report file/page: the folder cannot be made: Not a directory\n");
  EXPECT_EQ(error("--model net.prototxt --out s.json --report file"),
            "cortado: error: --report file: the folder cannot be made: Not a directory\n");
  folder_.write("m.json", R"({"format": "cortado-machine", "version": 1, "nodes": []})");
  const CommandResult machine = run_cortado(folder_.path(), "plan --model net.prototxt --machine m.json");
  EXPECT_EQ(machine.exit_code, 2);
  EXPECT_NE(machine.output.find("m.json"), std::string::npos) << machine.output;
  EXPECT_EQ(error("--model net.prototxt --out nowhere/s.json")
                .find("cortado: error: --out nowhere/s.json: there is no folder 'nowhere'"),
            0u);
}

}  // namespace
}  // namespace cortado
