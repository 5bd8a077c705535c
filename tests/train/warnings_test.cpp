#include "cortado/train/warnings.h"

#include <gtest/gtest.h>

#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"
#include "cortado/net/text_format.h"

namespace cortado {
namespace {

TEST(TrainingWarnings, NameFieldsWithoutEffect) {
  auto warnings = [](const std::string& text) {
    caffe::SolverParameter solver;
    parse_text(text, "s", solver);
    return fields_without_effect(solver, "s");
  };
  EXPECT_TRUE(warnings("debug_info: false snapshot_diff: false").empty());
  EXPECT_EQ(
      warnings("debug_info: true snapshot_diff: true"),
      (std::vector<std::string>{"s: snapshot_diff has no effect: snapshots hold no gradients; remove it",
                                "s: debug_info has no effect; remove it"}));
}

// Caffe adds the decay to every learnable parameter's gradient, also where that is zero because none arrives.
TEST(TrainingWarnings, NameParametersThatCaffeDecaysWithoutAGradient) {
  auto layer = [](const std::string& name, const std::string& bottom, const std::string& more) {
    return "layer { name: '" + name + "' type: 'InnerProduct' bottom: '" + bottom + "' top: '" + name +
           "' inner_product_param { num_output: 2 bias_term: false } " + more + " }\n";
  };
  const NetFile file = parse_net(
      "layer { name: 'x' type: 'Input' top: 'x' top: 'y' input_param { shape { dim: 1 dim: 2 } } }\n" +
          layer("before", "x", "") + layer("used", "before", "propagate_down: false") +
          layer("side", "x", "") + layer("frozen", "x", "param { lr_mult: 0 }") +
          layer("undecayed", "x", "param { decay_mult: 0 }") +
          "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'used' bottom: 'y' }",
      "n");
  const Network network = load_network(file, net_state(Phase::train), declared_source_shapes).network;
  UpdateOptions options;
  EXPECT_TRUE(undecayed_parameters(network, options).empty());
  options.weight_decay = 0.1;
  const std::vector<std::string> lines = undecayed_parameters(network, options);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0],
            "n:2: layer 'before': parameter 'before/weight' has no gradient and keeps its values, which "
            "Caffe would "
            "let weight_decay shrink; give it lr_mult: 0 or decay_mult: 0");
  EXPECT_EQ(lines[1].find("n:4: layer 'side'"), 0u) << lines[1];
}

}  // namespace
}  // namespace cortado
