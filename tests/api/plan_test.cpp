#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/api/nets.h"
#include "tests/app/run_command.h"
#include "tests/base/scratch_folder.h"

namespace cortado::api {
namespace {

constexpr const char* alexnet = CORTADO_SOURCE_DIR "/models/alexnet/train_val.prototxt";
const NetworkOptions of_alexnet{.batch = 128, .input_shape = "3x227x227"};
const std::string as_options = std::string("--model ") + alexnet + " --input-shape 3x227x227 --batch 128";

// Without what depends on when it was made.
nlohmann::json without_times(const std::string& text) {
  nlohmann::json json = nlohmann::json::parse(text);
  json.erase("search_seconds");
  json.erase("pricing_seconds");
  return json;
}

TEST(Plan, IsThatOfTheCommand) {
  const TemporaryFolder folder;
  const CommandResult result =
      run_cortado(folder.path(), "plan " + as_options +
                                     " --machine layer-wise-p100 --devices 4 --json plan.json --out s.json");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const Network net = Network::from_file(alexnet, of_alexnet);
  const Plan plan = api::plan(net, "layer-wise-p100", 4);
  const nlohmann::json json = without_times(folder.read("plan.json"));
  EXPECT_EQ(without_times(plan.json()), json);
  EXPECT_EQ(plan.strategy().text(net, 4), folder.read("s.json"));

  // The fields say what the JSON does.
  EXPECT_EQ(plan.seconds(), json["cost_seconds"].get<double>());
  EXPECT_TRUE(plan.optimal());
  EXPECT_EQ(plan.memory_bytes(), json["memory_bytes"].get<int64_t>());
  const std::vector<Plan::Layer> layers = plan.layers();
  ASSERT_EQ(layers.size(), json["layers"].size());
  double sum = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    EXPECT_EQ(layers[i].name, json["layers"][i]["name"].get<std::string>());
    EXPECT_EQ(layers[i].bytes, json["layers"][i]["bytes"].get<int64_t>());
    for (const auto& [letter, degree] : layers[i].configuration.degrees)
      EXPECT_EQ(degree, json["layers"][i]["config"][std::string(1, letter)].get<int>());
    sum += layers[i].compute_seconds + layers[i].sync_seconds + layers[i].transfer_seconds;
  }
  EXPECT_NEAR(sum, plan.seconds(), 1e-9 * sum);
  ASSERT_EQ(plan.baselines().size(), json["baselines"].size());
  for (const Plan::Baseline& baseline : plan.baselines()) EXPECT_GE(baseline.seconds, plan.seconds() * 0.999);
}

TEST(Plan, RefusesAsTheCommandDoes) {
  const TemporaryFolder folder;
  const Network net = Network::from_file(alexnet, of_alexnet);
  const std::string options = "plan " + as_options + " --machine layer-wise-p100 --devices 2 --memory 0.25";
  const std::string text =
      error_of([&] { plan(net, "layer-wise-p100", {.devices = 2, .memory_bytes = 1 << 28}); });
  EXPECT_NE(text.find("net 'AlexNet' on 2 devices"), std::string::npos) << text;
  EXPECT_EQ(run_cortado(folder.path(), options).output, "cortado: error: " + text + "\n");

  const std::string unknown = error_of([] { Machine("layer-wise-p1000"); });
  EXPECT_EQ(run_cortado(folder.path(), "plan " + as_options + " --machine layer-wise-p1000").output,
            "cortado: error: " + unknown + "\n");
  const std::string strategy = error_of([&] { simulate(net, "modl", Machine("layer-wise-p100").first(2)); });
  EXPECT_EQ(run_cortado(folder.path(),
                        "simulate " + as_options + " --machine layer-wise-p100 --devices 2 --strategy modl")
                .output,
            "cortado: error: " + strategy + "\n");
}

TEST(Sweep, IsThatOfTheCommand) {
  const TemporaryFolder folder;
  const CommandResult result = run_cortado(
      folder.path(),
      "plan " + as_options +
          " --machine layer-wise-p100 --sweep devices=1..4 batch=16/device --json s.json --csv s.csv");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const Network net = Network::from_file(alexnet, of_alexnet);
  const Sweep found = sweep(net, "layer-wise-p100", {.axes = {"devices=1..4", "batch=16/device"}});
  EXPECT_EQ(result.output, found.text());
  EXPECT_EQ(folder.read("s.json"), found.json());
  EXPECT_EQ(folder.read("s.csv"), found.csv());
  EXPECT_NE(found.page().find("</html>"), std::string::npos);
  const std::vector<Sweep::Point> points = found.points();
  ASSERT_EQ(points.size(), 3u);
  for (const Sweep::Point& point : points) {
    EXPECT_EQ(point.batch, 16 * point.devices);
    EXPECT_NEAR(point.seconds, point.compute_seconds + point.exchange_seconds + point.sync_seconds,
                1e-9 * point.seconds);
  }
  EXPECT_EQ(points[2].twice_as_fast[0].links, "group-4");
  EXPECT_EQ(found.smallest().at(0).devices, 1);
  EXPECT_NE(error_of([&] { sweep(net, "layer-wise-p100", {.axes = {"devices=32"}}); }).find("give 1 to 16"),
            std::string::npos);
}

TEST(Simulation, IsThatOfTheCommand) {
  const TemporaryFolder folder;
  const Network net = Network::from_file(alexnet, of_alexnet);
  for (const std::string name : {"auto", "owt"}) {
    const CommandResult result = run_cortado(
        folder.path(), "simulate " + as_options +
                           " --machine layer-wise-p100 --devices 4 --json s.json --trace t.json --strategy " +
                           name);
    ASSERT_EQ(result.exit_code, 0) << result.output;
    const auto json = nlohmann::json::parse(folder.read("s.json"));
    const Simulation simulation = simulate(net, name, Machine("layer-wise-p100").first(4));
    EXPECT_EQ(simulation.seconds(), json["step_seconds"].get<double>()) << json;
    EXPECT_EQ(simulation.trace(), folder.read("t.json"));
    EXPECT_EQ(result.output.find(simulation.text()), 0u) << result.output;
  }
}

TEST(Simulation, TellsWhatEachDeviceDoes) {
  const Network net = Network::from_file(alexnet, of_alexnet);
  const Simulation simulation = simulate(net, "data", Machine("layer-wise-p100").first(2));
  const std::vector<Simulation::Device> devices = simulation.devices();
  ASSERT_EQ(devices.size(), 2u);
  std::vector<double> computing(2);
  for (const Simulation::Step& step : simulation.timeline()) {
    EXPECT_LE(step.begin, step.end);
    if (step.lane == Simulation::Lane::compute)
      computing[static_cast<size_t>(step.device)] += step.end - step.begin;
  }
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(devices[i].computing, computing[i], 1e-9);
    EXPECT_NEAR(devices[i].computing + devices[i].exposed_communication, devices[i].end, 1e-9);
    EXPECT_GT(devices[i].communicating, 0);
  }
  EXPECT_EQ(simulation.exposed_communication(), devices[0].exposed_communication);
  // A ring of two sends each gradient once from either side.
  EXPECT_NEAR(static_cast<double>(simulation.bytes()), 2. * 4 * static_cast<double>(net.parameter_count()),
              1e3);
}

TEST(Network, TellsItsLayersAndShapes) {
  const Network net = Network::from_text(small_lenet());
  EXPECT_EQ(net.name(), "small-lenet");
  EXPECT_EQ(net.batch(), 16);
  EXPECT_EQ(net.tensor("ip1"), (Shape{16, 16}));
  EXPECT_EQ(net.parameter_count(), 6 * 9 + 6 + 150 * 16 + 16 + 16 * 4 + 4);
  const std::vector<Network::Layer> layers = net.layers();
  ASSERT_EQ(layers.size(), 7u);
  EXPECT_EQ(layers[1].name, "conv1");
  EXPECT_EQ(layers[1].type, "Convolution");
  EXPECT_EQ(layers[1].inputs, std::vector<std::string>{"data"});
  EXPECT_EQ(layers[1].parameters, (std::vector<std::string>{"conv1/weight", "conv1/bias"}));
  EXPECT_EQ(net.with_batch(3).tensor("conv1"), (Shape{3, 6, 10, 10}));
  EXPECT_EQ(Network::from_text(small_lenet(), {.phase = Phase::test}).layers().size(), 8u);
}

TEST(Machine, TellsItsDevices) {
  const Machine machine("layer-wise-p100");
  EXPECT_GT(machine.device(0).peak_flops, 1e12);
  EXPECT_EQ(machine.first(2).devices(), 2);
  EXPECT_EQ(Machine::from_text(machine.text()).text(), machine.text());
  EXPECT_NE(error_of([&] { machine.device(machine.devices()); }), "");
}

}  // namespace
}  // namespace cortado::api
