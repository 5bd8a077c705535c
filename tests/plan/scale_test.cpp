// Long nets and long strategies. What takes the square of their length passes this program's time limit,
// which is shorter than that of others.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>

#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"
#include "cortado/parallel/strategy.h"
#include "cortado/plan/elimination.h"
#include "cortado/plan/order.h"
#include "cortado/program/lower.h"

#include "tests/plan/graphs.h"

namespace cortado {
namespace {

// Inner products and activations, some in place, one after the other.
std::string chain(int layers) {
  std::string text =
      "layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 2 dim: 4 } } }\n";
  std::string bottom = "data";
  for (int i = 0; i < layers; ++i) {
    const std::string name = fmt::format("l{}", i), top = i % 3 == 2 ? bottom : name;
    text += fmt::format(
        "layer {{ name: '{}' bottom: '{}' top: '{}' {} }}\n", name, bottom, top,
        i % 3 == 0 ? "type: 'InnerProduct' inner_product_param { num_output: 4 }" : "type: 'ReLU'");
    bottom = top;
  }
  return text + fmt::format(
                    "layer {{ name: 'loss' type: 'EuclideanLoss' bottom: '{}' bottom: 'data' top: "
                    "'loss' }}",
                    bottom);
}

Network chain_network(int layers) {
  return load_network(parse_net(chain(layers), "chain.prototxt"), net_state(Phase::train),
                      declared_source_shapes)
      .network;
}

std::string strategy_of(int rules, const std::function<std::string(int)>& pattern) {
  std::string text = R"({"format": "cortado-strategy", "version": 1, "ranks": 1, "layers": {)";
  for (int i = 0; i < rules; ++i) text += fmt::format("\"{}\": {{\"n\": 1}},\n", pattern(i));
  return text + R"("*": {}}})";
}

TEST(Scale, LongNetsAreBuiltCutAndLowered) {
  constexpr int layers = 20'002;
  const Network network = chain_network(layers);
  ASSERT_EQ(std::ssize(network.nodes()), layers + 2);
  for (const auto& node : network.nodes())
    ASSERT_EQ(network.nodes()[network.node(node.name)].name, node.name);
  const Strategy strategy = built_in_strategy("owt", network, 2);
  EXPECT_EQ(strategy.find("l20001")->config.degrees.c, 2);
  EXPECT_EQ(std::ssize(resolve(strategy, network, 2, "owt")), layers + 2);
  const Program program =
      lower(network, [](const Task&) { return TaskFacts{.saved = {64}, .scratch = {64}}; });
  EXPECT_GT(program.arena.count, 64 * layers);
}

TEST(Scale, LongStrategiesAreReadInOrder) {
  constexpr int layers = 1000, rules = 300'000;
  const Network network = chain_network(layers);
  auto pattern = [](int i) { return fmt::format("l{}{}", i % layers, std::string(i / layers, '*')); };
  const Strategy strategy = parse_strategy(strategy_of(rules, pattern), "long.json");
  ASSERT_EQ(std::ssize(strategy.rules), rules + 1);
  for (int i : {0, 1, 10, 999, 1000, 299'999}) EXPECT_EQ(strategy.rules[i].pattern, pattern(i));
  EXPECT_EQ(strategy.rules.back().pattern, "*");
  EXPECT_EQ(std::ssize(resolve(strategy, network, 1, "long.json")), layers + 2);
}

// Each star may stand for any letters: trying all of their lengths takes longer than the universe is old.
TEST(Scale, PatternsOfManyStars) {
  Strategy strategy;
  std::string stars;
  for (int i = 0; i < 40; ++i) stars += "*a";
  strategy.rules = {{.pattern = stars + "*b", .layer = {}, .planned_for = {}}};
  EXPECT_EQ(strategy.find(std::string(200, 'a')), nullptr);
  EXPECT_NE(strategy.find(std::string(200, 'a') + "b"), nullptr);
  EXPECT_EQ(strategy.find(std::string(39, 'a') + "b"), nullptr);
}

TEST(Scale, LongChainsAreOrdered) {
  std::vector<std::pair<int, int>> edges;
  constexpr int vertices = 40'000;
  for (int i = 1; i < vertices; ++i) edges.emplace_back(i - 1, i);
  const plan::CostGraph graph = plan::graph_of(1, vertices, 2, edges);
  const plan::EliminationOrder order = plan::elimination_order(graph, Bytes{1 << 30});
  EXPECT_LE(order.scope.size(), 2u);
  EXPECT_EQ(plan::Elimination(graph, order.vertices, false).assignment().size(), size_t{vertices});
}

}  // namespace
}  // namespace cortado
