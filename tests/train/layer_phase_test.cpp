// Layers that name their phase behave by it, in a network of the other one.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>

#include "cortado/net/read_net.h"
#include "cortado/train/data_network.h"

namespace cortado {
namespace {

const std::string ones =
    "layer { name: 'x' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: 20 dim: 50 }"
    " data_filler { value: 1 } } }";

// The values of a network's outputs, by name.
std::map<std::string, std::vector<double>> run(const std::string& layers, Phase phase) {
  DataNetwork data(parse_net(ones + layers, "n"), net_state(phase), {});
  ParameterStore parameters;
  Executor executor(data.network(), compile(data.network()), parameters, data.sources());
  executor.run(0);
  std::map<std::string, std::vector<double>> values;
  for (const OutputValue& output : output_values(executor)) values[output.name].push_back(output.value);
  return values;
}

std::string layer(const std::string& name, const std::string& type, const std::string& phase) {
  return "layer { name: '" + name + "' type: '" + type + "' bottom: 'x' top: '" + name + "' " + phase + " }";
}

TEST(LayerPhase, DropoutDropsByItsOwnPhase) {
  for (Phase phase : {Phase::train, Phase::test}) {
    auto values = run(layer("own", "Dropout", "") + layer("trains", "Dropout", "phase: TRAIN") +
                          layer("tests", "Dropout", "phase: TEST"),
                      phase);
    EXPECT_EQ(std::ranges::count(values["own"], 1.0), phase == Phase::train ? 0 : 1000);
    const auto kept = std::ranges::count(values["trains"], 2.0);
    EXPECT_GT(kept, 400);
    EXPECT_EQ(std::ranges::count(values["trains"], 0.0), 1000 - kept);
    EXPECT_EQ(std::ranges::count(values["tests"], 1.0), 1000);
  }
}

// Without statistics of its own, a BatchNorm of testing divides by sqrt(eps); one of training takes the
// batch's.
TEST(LayerPhase, BatchNormTakesStatisticsByItsOwnPhase) {
  for (Phase phase : {Phase::train, Phase::test}) {
    auto values =
        run(layer("trains", "BatchNorm", "phase: TRAIN") + layer("tests", "BatchNorm", "phase: TEST"), phase);
    for (double value : values["trains"]) EXPECT_NEAR(value, 0, 1e-3);
    for (double value : values["tests"]) EXPECT_NEAR(value, 1 / std::sqrt(1e-5), 0.1);
  }
}

// The net that a solver trains has gradients in phase TEST, too, and one that it tests has none in TRAIN.
TEST(LayerPhase, TheUseOfANetworkDecidesOnGradients) {
  const std::string layers =
      "layer { name: 'p' type: 'InnerProduct' bottom: 'x' top: 'p' inner_product_param { num_output: 3 } }"
      "layer { name: 'd' type: 'Dropout' bottom: 'p' top: 'd' }"
      "layer { name: 'l' type: 'EuclideanLoss' bottom: 'd' bottom: 'p' top: 'l' propagate_down: true "
      "propagate_down: true }";
  for (Phase phase : {Phase::train, Phase::test}) {
    for (bool learns : {false, true}) {
      DataNetwork data(parse_net(ones + layers, "n"), net_state(phase), {.learns = learns});
      ParameterStore parameters;
      Executor executor(data.network(), compile(data.network()), parameters, data.sources());
      int gradients = 0;
      executor.run(0, [&](EntryIndex) { ++gradients; });
      EXPECT_EQ(data.network().learns(), learns);
      EXPECT_EQ(gradients, learns ? 2 : 0);
      EXPECT_EQ(data.network().nodes()[NodeIndex(2)].phase, phase);
    }
  }
}

}  // namespace
}  // namespace cortado
