#include "cortado/plan/planner.h"

#include <cmath>
#include <gtest/gtest.h>

#include "cortado/layers/convolution.h"
#include "cortado/layers/euclidean_loss.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/plan/exhaustive.h"
#include "cortado/plan/plan_graph.h"
#include "cortado/plan/repeated.h"
#include "cortado/plan/strategy_seconds.h"
#include "cortado/program/lower.h"
#include "cortado/program/verify.h"
#include "cortado/program/volume.h"

#include "tests/plan/fake_costs.h"
#include "tests/program/nets.h"

namespace cortado {
namespace {

using testing::FakeCosts;
using testing::one_node;

double assignments(const plan::CostGraph& graph) {
  double all = 1;
  for (int v = 0; v < graph.size(); ++v) all *= graph.candidates(v);
  return all;
}

TEST(Planner, FindsWhatExhaustiveSearchFinds) {
  FakeCosts costs;
  int compared = 0;
  for (uint32_t seed = 0; seed < 200 && compared < 40; ++seed) {
    const Network net = testing::random_net(seed);
    const plan::PlanGraph graph = plan::make_plan_graph(net, {.devices = 2}, costs, one_node(2));
    if (assignments(graph.costs) > 2e5) continue;
    ++compared;
    SCOPED_TRACE(seed);
    const plan::Plan plan = plan::make_plan(net, {.devices = 2}, costs, one_node(2));
    EXPECT_TRUE(plan.proven);
    EXPECT_DOUBLE_EQ(plan.seconds.count, plan::exhaustive_search(graph.costs).seconds);
  }
  EXPECT_EQ(compared, 40);
}

// Where candidates are left out, the optimum of all of them lies between the bound and the plan.
TEST(Planner, BoundsWhatItLeavesOut) {
  FakeCosts costs;
  int omitted = 0, proven = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Network net = testing::random_net(seed);
    const plan::Plan best = plan::make_plan(net, {.devices = 8}, costs, one_node(8));
    plan::PricingOptions few{.devices = 8, .kept_candidates = 2 + seed % 16};
    if (seed % 2 == 0) few.most_tables = {1};
    if (seed % 2 == 1) few.most_volumes = 1;
    const plan::Plan plan = plan::make_plan(net, few, costs, one_node(8));
    const double rounding = 1e-9 * best.seconds.count;
    EXPECT_LE(plan.lower_bound.count, best.seconds.count + rounding);
    EXPECT_GE(plan.seconds.count, best.seconds.count - rounding);
    EXPECT_LE(plan.lower_bound, plan.seconds);
    EXPECT_TRUE(!plan.proven || plan.seconds.count <= best.seconds.count + rounding);
    omitted += plan.candidates < best.candidates;
    proven += plan.proven && plan.candidates < best.candidates;
    for (const plan::Assignment& baseline : plan.baselines)
      EXPECT_LE(plan.seconds.count, baseline.seconds.count + rounding) << baseline.name;
  }
  EXPECT_GT(omitted, 30);
  EXPECT_GT(proven, 0);
  EXPECT_LT(proven, omitted);
}

// Where not all candidates are priced with their neighbours, but all that an optimum may have, the plan is
// the optimum of all.
TEST(Planner, PricesWhatAnOptimumMayHave) {
  FakeCosts costs;
  int fewer = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Network net = testing::random_net(seed);
    const plan::Plan best = plan::make_plan(net, {.devices = 8}, costs, one_node(8));
    const plan::PlanGraph all = plan::make_plan_graph(net, {.devices = 8}, costs, one_node(8));
    double pairs = 0;
    for (const auto& edge : all.costs.edges()) pairs += static_cast<double>(edge.seconds->size());
    const plan::PricingOptions some{.devices = 8, .most_volumes = 0.5 * 8 * pairs, .kept_candidates = 40};
    const plan::Plan plan = plan::make_plan(net, some, costs, one_node(8));
    if (!plan.proven || plan.candidates == best.candidates) continue;
    ++fewer;
    EXPECT_NEAR(plan.seconds.count, best.seconds.count, 1e-9 * best.seconds.count);
    EXPECT_EQ(plan.lower_bound, plan.seconds);
  }
  EXPECT_GT(fewer, 0);
}

// Of very few candidates, those of a strategy that is known to be good are kept.
TEST(Planner, KeepsWhatIsKnownToBeGood) {
  FakeCosts costs;
  int better = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Network net = testing::random_net(seed);
    const plan::Plan best = plan::make_plan(net, {.devices = 8}, costs, one_node(8));
    plan::PricingOptions few{.devices = 8, .most_volumes = 1, .kept_candidates = 2};
    const plan::Plan without = plan::make_plan(net, few, costs, one_node(8));
    few.good = {best.strategy};
    const plan::Plan with = plan::make_plan(net, few, costs, one_node(8));
    EXPECT_NEAR(with.seconds.count, best.seconds.count, 1e-9 * best.seconds.count);
    better += with.seconds.count < without.seconds.count * (1 - 1e-9);
    few.good = {plan::repeated(best.strategy, 1000)};  // what no layer allows
    EXPECT_EQ(plan::make_plan(net, few, costs, one_node(8)).seconds, without.seconds);
  }
  EXPECT_GT(better, 10);
}

// A judge that likes few devices: of what it is asked about it gets what it likes most.
TEST(Planner, TakesWhatAJudgePrefers) {
  FakeCosts costs;
  for (uint32_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    const Network net = testing::random_net(seed);
    std::vector<Strategy> asked;
    std::vector<double> answers;
    const plan::Judge judge = [&](const Strategy& strategy) {
      double parts = 0;
      for (const Strategy::Rule& rule : strategy.rules) parts += rule.layer.config.degrees.product();
      asked.push_back(strategy);
      answers.push_back(1000 + parts);
      return Seconds{answers.back()};
    };
    const plan::Plan cheapest = plan::make_plan(net, {.devices = 4}, costs, one_node(4));
    EXPECT_FALSE(cheapest.judged);
    const plan::Plan plan = plan::make_plan(net, {.devices = 4}, costs, one_node(4), {.judge = judge});
    ASSERT_TRUE(plan.judged);
    const auto least = std::ranges::min_element(answers);
    EXPECT_EQ(plan.judged->seconds.count, *least);
    EXPECT_EQ(plan.strategy, asked[static_cast<size_t>(least - answers.begin())]);
    EXPECT_EQ(*least, 1000 + static_cast<double>(plan.strategy.rules.size())) << "one device was asked about";
    EXPECT_EQ(asked[0], cheapest.strategy);
    EXPECT_EQ(plan.judged->cheapest.count, answers[0]);
    EXPECT_EQ(plan.judged->strategies, std::ssize(answers));
    EXPECT_GE(plan.seconds.count, cheapest.seconds.count * (1 - 1e-9));
    EXPECT_DOUBLE_EQ(plan.lower_bound.count, cheapest.lower_bound.count);
  }
}

TEST(Planner, PlansRunAndNoBaselineIsFaster) {
  FakeCosts costs;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    for (int devices : {1, 2, 3, 4, 6}) {
      SCOPED_TRACE(std::to_string(seed) + " on " + std::to_string(devices));
      const Network net = testing::random_net(seed);
      const plan::Plan plan = plan::make_plan(net, {.devices = devices}, costs, one_node(devices));
      const NodeStrategies strategies = resolve(plan.strategy, net, devices, "the plan");
      std::vector<Program> programs;
      for (int rank = 0; rank < devices; ++rank) {
        programs.push_back(lower(net, place(net, strategies, devices), testing::facts_of,
                                 {.keep_tensors = false, .rank = rank, .after_pass = {}}));
      }
      EXPECT_NO_THROW(verify_job(programs));
      ASSERT_EQ(plan.baselines.size(), built_in_strategies().size() + 1);
      const plan::Assignment& best_of_each = plan.baselines.back();
      EXPECT_EQ(best_of_each.name, "best-of-each");
      for (const plan::Assignment& baseline : plan.baselines) {
        EXPECT_GE(baseline.seconds.count, plan.seconds.count * (1 - 1e-9)) << baseline.name;
        EXPECT_LE(best_of_each.seconds.count, baseline.seconds.count * (1 + 1e-9)) << baseline.name;
      }
      ASSERT_EQ(plan.runners_up.size(), plan.groups.size());
      for (size_t g = 0; g < plan.groups.size(); ++g) {
        EXPECT_GE(plan.runners_up[g].adds.count, -1e-12);
        // The second-best is no worse than the cut by sample, unless that is the best.
        const bool by_sample = plan.by_sample[g].strategy == plan.groups[g].strategy;
        if (by_sample) {
          EXPECT_EQ(plan.by_sample[g].adds.count, 0);
        } else {
          EXPECT_GE(plan.by_sample[g].adds.count, plan.runners_up[g].adds.count - 1e-12);
        }
        EXPECT_EQ(plan.groups[g].shares.size(), static_cast<size_t>(devices));
      }
      EXPECT_EQ(plan.strategy, plan::make_plan(net, {.devices = devices}, costs, one_node(devices)).strategy);
    }
  }
}

TEST(Planner, GroupsSumUpToThePlan) {
  FakeCosts costs;
  const plan::Plan plan = plan::make_plan(testing::random_net(3), {.devices = 4}, costs, one_node(4));
  double sum = 0;
  for (const plan::PlannedGroup& group : plan.groups) sum += group.total().count;
  EXPECT_NEAR(sum, plan.seconds.count, 1e-9 * sum);
}

LayerPtr convolution(int64_t outputs) {
  ConvolutionOptions options;
  options.num_output = outputs;
  options.kernel = {3};
  options.pad = {1};
  return std::make_shared<Convolution>(options);
}

// A chain of layers without sums inside: where nothing is read twice, Eq. 1 counts what programs send. Slow
// updates: it pays to share them, though what was updated is then sent after the backward pass.
class SlowUpdates : public FakeCosts {
 public:
  Seconds update(Bytes parameters, int) override { return {static_cast<double>(parameters.count) * 1e-6}; }
};

// Of any strategy Eq. 1 can be asked; of the plan's it gives the plan's seconds.
TEST(Planner, StrategiesCostWhatTheirPlanDoes) {
  FakeCosts costs;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Network net = testing::random_net(seed, Phase::train, 4);
    const std::vector<int> nodes{0, 0, 0, 0, 1, 1, 1, 1};
    const plan::Plan plan = plan::make_plan(net, {.devices = 8}, costs, nodes);
    const Seconds seconds = plan::strategy_seconds(net, plan.strategy, {.devices = 8}, costs, nodes);
    EXPECT_NEAR(seconds.count, plan.seconds.count, 1e-9 * plan.seconds.count);
  }
}

TEST(Planner, OwnersAreTakenWhereTheySaveMoreThanTheyShow) {
  FakeCosts quick;
  SlowUpdates slow;
  const plan::PricingOptions options{.devices = 2, .dimensions = "n"};
  int owned = 0;
  for (uint32_t seed = 0; seed < 10; ++seed) {
    const Network net = testing::random_net(seed);
    const plan::Plan without = plan::make_plan(net, options, quick, one_node(2));
    for (const auto& rule : without.strategy.rules) EXPECT_EQ(rule.layer.sync, GradientSync::allreduce);
    const plan::Plan plan = plan::make_plan(net, options, slow, one_node(2));
    for (const auto& rule : plan.strategy.rules) owned += rule.layer.sync == GradientSync::owner;
    // Built-in strategies sum by allreduce, and cost what their layers do.
    for (const plan::Assignment& baseline : plan.baselines) {
      double sum = 0;
      for (const plan::PlannedGroup& group : baseline.groups) {
        EXPECT_EQ(group.strategy.sync, is_opponent(baseline.name) && group.strategy.config.devices.size() > 1
                                           ? GradientSync::server
                                           : GradientSync::allreduce);
        sum += group.total().count;
      }
      EXPECT_NEAR(sum, baseline.seconds.count, 1e-9 * sum) << baseline.name;
      EXPECT_GE(baseline.seconds.count, plan.seconds.count * (1 - 1e-9)) << baseline.name;
    }
  }
  EXPECT_GT(owned, 10);
}

// Over a slow network gathers of what a large product reads and writes take less than the sum of its
// gradient; where there is no memory for them, or devices round otherwise, the gradient is summed.
TEST(Planner, GradientsAreReplicatedWhereThatIsCheaper) {
  FakeCosts costs;
  const LayerPtr product = std::make_shared<InnerProduct>(InnerProductOptions{.num_output = 144});
  const Network net = testing::NetBuilder()
                          .conv("a", "data")
                          .declare("b", product, {"a"}, {"b"})
                          .declare("relu", std::make_shared<Pointwise>(ReluOptions{}), {"b"}, {"relu"})
                          .loss("relu", "data")
                          .build();
  const plan::PricingOptions by_sample{.devices = 2, .dimensions = "n"};
  const auto sync_of = [](const plan::Plan& plan, std::string_view layer) {
    return plan.strategy.find(layer)->sync;
  };
  const plan::Plan plan = plan::make_plan(net, by_sample, costs, one_node(2));
  EXPECT_NO_THROW(resolve(plan.strategy, net, 2, "the plan"));
  EXPECT_EQ(sync_of(plan, "a"), GradientSync::allreduce);     // fewer weights than what it reads and writes
  EXPECT_EQ(sync_of(plan, "relu"), GradientSync::allreduce);  // none, of the product's group
  EXPECT_EQ(sync_of(plan, "b"), GradientSync::replicate);
  const auto baseline = [&](const char* name) {
    return *std::ranges::find(plan.baselines, name, &plan::Assignment::name);
  };
  const plan::Assignment replicated = baseline("replicated"), data = baseline("data");
  EXPECT_NEAR(plan.seconds.count, replicated.seconds.count, 1e-9 * plan.seconds.count);
  EXPECT_EQ(plan.bytes, replicated.bytes);
  const int64_t gathered = 2 * 144 + 2 * 144;  // floats: of both samples what the product reads and writes
  EXPECT_EQ(replicated.memory.count - data.memory.count, gathered * static_cast<int64_t>(sizeof(float)));
  const plan::Plan held =
      plan::make_plan(net, by_sample, costs, one_node(2), {.memory = {plan.memory.count - 1}});
  EXPECT_EQ(sync_of(held, "b"), GradientSync::allreduce);
  EXPECT_GT(held.seconds, plan.seconds);
  const plan::Plan unlike =
      plan::make_plan(net, {.devices = 2, .dimensions = "n", .replicate = false}, costs, one_node(2));
  EXPECT_EQ(sync_of(unlike, "b"), GradientSync::allreduce);
}

TEST(Planner, CountsTheBytesThatProgramsSend) {
  FakeCosts costs;
  SourceOptions data;
  data.kind = SourceOptions::Kind::input;
  data.shapes = {Shape{8, 3, 12, 12}, Shape{8, 16}};
  InnerProductOptions product;
  product.num_output = 16;  // which spares bytes where gradients are replicated
  std::vector<LayerDeclaration> layers;
  layers.push_back(testing::declared("data", std::make_shared<Source>(data), {}, {"x", "y"}));
  layers.push_back(testing::declared("a", convolution(8), {"x"}, {"a"}));
  layers.push_back(testing::declared("b", convolution(12), {"a"}, {"b"}));
  layers.push_back(testing::declared(
      "p", std::make_shared<Pooling>(PoolingOptions{.kernel = {2}, .stride = {2}}), {"b"}, {"p"}));
  layers.push_back(testing::declared("c", convolution(8), {"p"}, {"c"}));
  layers.push_back(testing::declared("f", std::make_shared<InnerProduct>(product), {"c"}, {"f"}));
  layers.push_back(testing::declared("loss", std::make_shared<EuclideanLoss>(), {"f", "y"}, {"loss"}));
  const Network net = testing::built(layers);
  for (int devices : {2, 4, 6}) {
    const plan::PlanGraph graph = plan::make_plan_graph(net, {.devices = devices}, costs, one_node(devices));
    for (std::string_view name : built_in_strategies()) {
      SCOPED_TRACE(std::string(name) + " on " + std::to_string(devices));
      const Strategy strategy = built_in_strategy(name, net, devices);
      EXPECT_EQ(strategy.find("f")->sync == GradientSync::replicate, name == "replicated");
      const NodeStrategies strategies = resolve(strategy, net, devices, "test");
      Bytes sent, predicted;
      for (int rank = 0; rank < devices; ++rank) {
        sent += volumes_of(lower(net, place(net, strategies, devices), testing::facts_of,
                                 {.keep_tensors = false, .rank = rank, .after_pass = {}}))
                    .total()
                    .sent;
      }
      std::vector<int> assignment;
      for (size_t v = 0; v < graph.groups.size(); ++v) {
        const auto& first = net.nodes()[graph.groups[v].nodes[0]];
        assignment.push_back(graph.candidate(static_cast<int>(v), *strategy.find(first.name)));
        const plan::Priced& priced = graph.candidates[v][static_cast<size_t>(assignment.back())];
        predicted += priced.sums_bytes + priced.sync_bytes;
        if (is_opponent(name)) predicted += priced.more_bytes_by_servers;
      }
      for (const auto& edge : graph.edges) predicted += graph.moved(edge, assignment);
      EXPECT_EQ(predicted, sent);
    }
  }
}

}  // namespace
}  // namespace cortado
