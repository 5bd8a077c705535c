#include "cortado/parallel/strategy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/layers/scale.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"

#include "tests/program/nets.h"

namespace cortado {
namespace {

using ::testing::HasSubstr;
using testing::NetBuilder;

Network small_net() {
  return NetBuilder()
      .conv("conv1", "data")
      .relu("conv1")
      .conv("conv2", "conv1")
      .loss("conv2", "data")
      .build();
}

std::string refusal_of(const std::function<void()>& work) {
  try {
    work();
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

std::string file(const std::string& layers, const std::string& more = "") {
  return R"({"format": "cortado-strategy", "version": 1, "ranks": 2, )" + more + R"("layers": {)" + layers +
         "}}";
}

std::string refusal(const std::string& json) {
  const Network net = small_net();
  return refusal_of([&] { resolve(parse_strategy(json, "s.json"), net, 2, "s.json"); });
}

TEST(Strategy, NamesGoBeforePatterns) {
  const Network net = small_net();
  const Strategy strategy =
      parse_strategy(file(R"("*": {}, "conv*": {"n": 2}, "conv2": {"c": 2, "devices": [1, 0]})"), "s.json");
  const NodeStrategies nodes = resolve(strategy, net, 2, "s.json");
  EXPECT_EQ(nodes[net.node("conv1")].config.degrees.n, 1);  // "*" stands before "conv*"
  EXPECT_EQ(nodes[net.node("conv2")].config.degrees.c, 2);
  EXPECT_EQ(nodes[net.node("conv2")].config.devices, (std::vector<int>{1, 0}));
}

TEST(Strategy, RoundTrips) {
  const Network net = small_net();
  for (const auto name : built_in_strategies()) {
    const Strategy strategy = built_in_strategy(name, net, 3);
    EXPECT_EQ(parse_strategy(strategy_text(strategy), "s.json"), strategy) << name;
  }
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Strategy strategy = random_strategy(seed, net, 6);
    EXPECT_EQ(parse_strategy(strategy_text(strategy), "s.json"), strategy) << seed;
  }
}

TEST(Strategy, WrongListsOfDevicesRoundTripToo) {
  for (const char* layer : {R"("*": {"n": 3, "devices": [0, 1]})", R"("*": {"devices": []})"}) {
    const Strategy strategy = parse_strategy(file(layer), "s.json");
    EXPECT_EQ(parse_strategy(strategy_text(strategy), "text"), strategy) << layer;
  }
}

TEST(Strategy, BuiltInOnesHoldForEveryNumberOfRanks) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Network net = testing::random_net(seed);
    for (int ranks : {1, 2, 3, 4, 8}) {
      for (const auto name : built_in_strategies())
        EXPECT_NO_THROW(resolve(built_in_strategy(name, net, ranks), net, ranks, "built in"));
      EXPECT_NO_THROW(resolve(random_strategy(seed, net, ranks), net, ranks, "random"));
    }
  }
}

// A product of 20736 weights that reads and writes 288 numbers, after a convolution of 144 that reads and
// writes 576; where nothing is learned there is nothing to replicate.
TEST(Strategy, ReplicatedIsDataWithWholeGradientsWhereThatSparesBytes) {
  const LayerPtr product = std::make_shared<InnerProduct>(InnerProductOptions{.num_output = 144});
  const NetBuilder builder =
      NetBuilder().conv("a", "data").declare("b", product, {"a"}, {"b"}).loss("b", "data");
  const Network net = builder.build();
  Strategy expected = built_in_strategy("data", net, 2);
  set_sync(expected, net, "b", GradientSync::replicate);
  EXPECT_EQ(built_in_strategy("replicated", net, 2), expected);
  const Network test_net = builder.build(Phase::test);
  EXPECT_EQ(built_in_strategy("replicated", test_net, 2), built_in_strategy("data", test_net, 2));
  EXPECT_EQ(built_in_strategy("replicated", net, 1), built_in_strategy("data", net, 1));
}

TEST(Strategy, RefusesToReplicateGradientsThatAreNotComputedApart) {
  const Network net = NetBuilder()
                          .conv("a", "data", "s")
                          .conv("b", "a", "s")
                          .conv("c", "b")
                          .declare("scale", std::make_shared<Scale>(ScaleOptions{}), {"c"}, {"scale"})
                          .tanh("scale", "t")
                          .loss("t", "data")
                          .build();
  auto reason = [&](const char* layer) {
    return sync_refusal(net, net.node(layer), GradientSync::replicate);
  };
  EXPECT_THAT(reason("a"), HasSubstr("parameter 's_w' is shared"));
  EXPECT_THAT(reason("scale"), HasSubstr("of a Scale layer's parameters are not computed apart"));
  EXPECT_EQ(reason("c"), "");
  EXPECT_EQ(reason("t"), "");  // it has none
  Strategy strategy = built_in_strategy("data", net, 2);
  set_sync(strategy, net, "c", GradientSync::replicate);
  EXPECT_NO_THROW(resolve(strategy, net, 2, "test"));
  EXPECT_EQ(strategy.find("c")->sync, GradientSync::replicate);
  EXPECT_EQ(strategy.find("b")->sync, GradientSync::allreduce);
  set_sync(strategy, net, "sc*", GradientSync::replicate);
  EXPECT_THROW(resolve(strategy, net, 2, "test"), UserError);
  EXPECT_THROW(set_sync(strategy, net, "d*", GradientSync::replicate), UserError);
}

TEST(Strategy, RefusesWithLayerReasonAndRemedy) {
  EXPECT_THAT(refusal(file(R"("conv1": {"n": 2})")), HasSubstr("add a rule \"*\""));
  EXPECT_THAT(refusal(file(R"("*": {}, "conv1": {"h": 9})")), HasSubstr("layer 'conv1': h = 9"));
  EXPECT_THAT(refusal(file(R"("*": {}, "conv9": {"n": 2})")), HasSubstr("'conv9' fits no layer"));
  EXPECT_THAT(refusal(file(R"("*": {"m": 2})")), HasSubstr("no key \"m\""));
  EXPECT_THAT(refusal(file(R"("*": {"n": -2})")), HasSubstr("layers.*.n: -2 is not a whole number"));
  EXPECT_THAT(refusal(file(R"("*": {"sync": "own"})")), HasSubstr("use allreduce, owner, server or"));
  EXPECT_THAT(refusal(file(R"("*": {})", R"("net": "other", )")), HasSubstr("is for net 'other'"));
  EXPECT_THAT(refusal(file(R"("conv*": {"batch_norm": "local"}, "*": {})")), HasSubstr("is for BatchNorm"));
  EXPECT_THAT(refusal("{"), HasSubstr("is not JSON"));
  EXPECT_THAT(refusal("{}"), HasSubstr("is not a strategy file"));
  EXPECT_THAT(refusal(R"({"format": "cortado-strategy", "version": 7, "layers": {}})"), HasSubstr("version"));
  // Values that nest deeply are told without going into them.
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
  EXPECT_THAT(refusal(file(R"("*": {"n": )" + deep + "}")),
              HasSubstr("layers.*.n: a list is not a whole number"));
  EXPECT_THAT(refusal(R"({"format": "cortado-strategy", "version": )" + deep + "}"),
              HasSubstr("version: a list is not supported"));
  const Network net = small_net();
  EXPECT_THAT(refusal_of([&] { resolve(built_in_strategy("data", net, 4), net, 2, "data"); }),
              HasSubstr("the job has 2"));
  EXPECT_THAT(refusal_of([&] { load_strategy("dta", net, 2); }), HasSubstr("did you mean 'data'"));
}

// A pattern takes all that it fits, also a ReLU of a convolution's name.
TEST(Strategy, RulesGiveLayersAPrecision) {
  const Network f32 = NetBuilder()
                          .conv("conv1", "data")
                          .declare("conv1/relu", std::make_shared<Pointwise>(ReluOptions{}), {"conv1"}, {"r"})
                          .conv("conv2", "r")
                          .loss("conv2", "data")
                          .build();
  const Network net = f32.in(Precision::bf16);
  const Strategy strategy = parse_strategy(
      file(R"("conv2": {"precision": "bf16"}, "conv*": {"precision": "f32"}, "*": {})"), "s.json");
  EXPECT_EQ(parse_strategy(strategy_text(strategy), "s.json"), strategy);
  const NodeStrategies nodes = resolve(strategy, net, 2, "s.json");
  EXPECT_EQ(nodes[net.node("conv1")].precision, Precision::f32);
  EXPECT_EQ(nodes[net.node("conv1/relu")].precision, Precision::f32);
  EXPECT_EQ(nodes[net.node("conv2")].precision, Precision::bf16);
  EXPECT_EQ(nodes[net.node("loss")].precision, std::nullopt);
  const NodeStrategies beside = resolve_beside(net, net, nodes, 2);
  EXPECT_EQ(beside[net.node("conv1")].precision, Precision::f32);
  EXPECT_THAT(refusal_of([&] { resolve(strategy, f32, 2, "s.json"); }),
              HasSubstr("s.json: layer 'conv2': precision = bf16: the net computes in f32"));
  EXPECT_THAT(refusal(file(R"("*": {"precision": "fp16"})")), HasSubstr("use f32 or bf16"));
  EXPECT_EQ(refusal(file(R"("*": {"precision": "f32"})")), "");
}

TEST(Strategy, RefusesAPlanForAnotherNet) {
  const Network net = small_net();
  Strategy plan = built_in_strategy("data", net, 2);
  for (auto& rule : plan.rules) rule.planned_for = identity_of(net, net.node(rule.pattern));
  EXPECT_EQ(plan.rules[0].planned_for, "Convolution 2x4x6x6, weight 4x4x3x3, bias 4");
  EXPECT_EQ(parse_strategy(strategy_text(plan), "s.json"), plan);
  EXPECT_NO_THROW(resolve(plan, net, 2, "s.json"));
  plan.rules[0].planned_for = "Convolution 2x4x6x6, weight 4x4x5x5, bias 4";
  EXPECT_EQ(
      refusal_of([&] { resolve(plan, net, 2, "s.json"); }),
      "s.json: was planned for another net: layer 'conv1' was 'Convolution 2x4x6x6, weight 4x4x5x5, bias "
      "4', here it is 'Convolution 2x4x6x6, weight 4x4x3x3, bias 4'; plan this net with cortado plan, or "
      "remove \"planned_for\" of all layers");
  plan.rules[0].planned_for = "";
  EXPECT_NO_THROW(resolve(plan, net, 2, "s.json"));
  EXPECT_THAT(refusal(file(R"("*": {"planned_for": 7})")),
              HasSubstr("layers.*.planned_for: 7 is not a text"));
}

TEST(Strategy, LayersThatShareAParameterAreCutTheSameWay) {
  const Network net = NetBuilder().conv("a", "data", "s").conv("b", "a", "s").loss("b", "data").build();
  EXPECT_THAT(refusal_of([&] {
                resolve(parse_strategy(file(R"("a": {"c": 2}, "*": {})"), "s.json"), net, 2, "s.json");
              }),
              HasSubstr("share parameter"));
}

TEST(Strategy, TestNetsFollowTheTrainNet) {
  const Network train = small_net();
  const Network test =
      NetBuilder().conv("conv1", "data").conv("new", "conv1").loss("new", "data").build(Phase::test);
  const NodeStrategies first = resolve(built_in_strategy("model", train, 2), train, 2, "model");
  const NodeStrategies beside = resolve_beside(test, train, first, 2);
  EXPECT_EQ(beside[test.node("conv1")], first[train.node("conv1")]);
  EXPECT_EQ(beside[test.node("new")].config.degrees.n, 2);
}

// So that no rank of a test net needs whole samples.
TEST(Strategy, LayersOfTestNetsAreCutInSpaceAsWhatTheyRead) {
  const Network train = small_net();
  const Network test =
      NetBuilder().conv("conv1", "data").tanh("conv1", "new").loss("new", "data").build(Phase::test);
  using Case = std::pair<std::string, Degrees>;
  for (const auto& [space, degrees] :
       {Case{R"("h": 2, "w": 2)", {.h = 2, .w = 2}}, Case{R"("n": 2, "w": 2)", {.n = 2, .w = 2}},
        Case{R"("c": 2, "w": 2)", {.n = 2}}, Case{R"("c": 4)", {.n = 2}}}) {
    const Strategy strategy =
        parse_strategy(fmt::format(R"({{"format": "cortado-strategy", "version": 1, "ranks": 4,
                                       "layers": {{"conv1": {{{}}}, "*": {{}}}}}})",
                                   space),
                       "s.json");
    const NodeStrategies beside = resolve_beside(test, train, resolve(strategy, train, 4, "s.json"), 4);
    EXPECT_EQ(beside[test.node("new")].config.degrees, degrees) << space;
  }
}

// The files that docs/reference/strategy.md names fit the net of the zoo.
TEST(StrategyFile, ExamplesFitAlexnet) {
  const std::string root = CORTADO_SOURCE_DIR;
  const LoadedNetwork alexnet = load_network(read_net(root + "/models/alexnet/train_val.prototxt"),
                                             net_state(Phase::train), [](const LayerDeclaration&) {
                                               return std::vector<Shape>{{8, 3, 227, 227}, {8}};
                                             });
  for (const std::string name : {"data", "owt", "mixed"}) {
    const std::string path = root + "/examples/strategies/alexnet_" + name + ".json";
    EXPECT_NO_THROW(resolve(load_strategy(path, alexnet.network, 4), alexnet.network, 4, path)) << path;
  }
}

}  // namespace
}  // namespace cortado
