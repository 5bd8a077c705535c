// The search for cuts of least simulated time, against all cuts there are.
#include "cortado/tune/search_cuts.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "cortado/auto/refine_by_simulation.h"
#include "cortado/base/compute_threads.h"
#include "cortado/tune/tune_on_machine.h"

#include "tests/program/nets.h"

namespace cortado {
namespace {

class RandomChoices {
 public:
  explicit RandomChoices(uint32_t seed) : random_(seed) {}
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  double power_of_ten(double low, double high) {
    return std::pow(10, std::uniform_real_distribution<double>(low, high)(random_));
  }

 private:
  std::mt19937 random_;
};

// One or two nodes of one or two devices, where messages, tasks' overheads or computing take most of the
// time.
DeviceGraph random_machine(RandomChoices& random) {
  Node node;
  const int devices = random.pick(1, 2);
  node.devices.assign(static_cast<size_t>(devices), Device{.name = "",
                                                           .peak = {random.power_of_ten(8, 10)},
                                                           .memory_bandwidth = {random.power_of_ten(9, 11)},
                                                           .memory = {1 << 30},
                                                           .task_overhead = {random.power_of_ten(-7, -4)}});
  node.links = {{.group = devices, .link = {{random.power_of_ten(-7, -4)}, {random.power_of_ten(7, 11)}}}};
  node.nic = {random.power_of_ten(7, 10)};
  Machine machine;
  machine.name = "random";
  machine.nodes.assign(devices == 1 ? 2 : 1, node);
  machine.network = {{random.power_of_ten(-6, -4)}, node.nic};
  return DeviceGraph(machine);
}

Network small_net(RandomChoices& random) {
  testing::NetBuilder builder;
  std::string from = "data";
  for (int layer = random.pick(1, 2); layer > 0; --layer) {
    const std::string name = "x" + std::to_string(layer);
    if (random.pick(0, 3) == 0) {
      builder.tanh(from, name);
    } else {
      builder.conv(name, from);
      if (random.pick(0, 1) == 0) builder.relu(name);
    }
    from = name;
  }
  if (random.pick(0, 2) == 0) {
    builder.sum("joined", {from, "data"});
    from = "joined";
  }
  return builder.conv("last", from).loss("last", "data").build();
}

// Every way of every choice.
void for_each(const Strategy& start, const Network& net, const std::vector<CutChoice>& choices, size_t next,
              const std::function<void(const Strategy&)>& visit) {
  if (next == choices.size()) return visit(start);
  for (const auto& way : choices[next].ways) {
    Strategy strategy = start;
    for (size_t n = 0; n < way.size(); ++n)
      for (Strategy::Rule& rule : strategy.rules)
        if (rule.pattern == net.nodes()[choices[next].nodes[n]].name) rule.layer = way[n];
    for_each(strategy, net, choices, next + 1, visit);
  }
}

// CORTADO_SEARCHES=2000 takes an hour of one core or more; 0:500, 500:1000 and so on are its parts.
std::pair<uint32_t, uint32_t> seeds() {
  const char* given = std::getenv("CORTADO_SEARCHES");
  const std::string words = given ? given : "10";
  const size_t colon = words.find(':');
  if (colon == std::string::npos) return {0, std::stoul(words)};
  return {std::stoul(words.substr(0, colon)), std::stoul(words.substr(colon + 1))};
}

TEST(SearchCuts, FindsTheLeastOfAllCuts) {
  const auto [first, end] = seeds();
  const ComputeThreads alone(1);  // programs so small are lowered sooner than threads start
  int gained = 0, spared = 0, all = 0;
  for (uint32_t seed = first; seed < end; ++seed) {
    SCOPED_TRACE(seed);
    RandomChoices random(seed);
    const Network net = small_net(random);
    const DeviceGraph graph = random_machine(random);
    AbsentMachine machine(graph);
    const auto seconds = simulated_seconds(net, machine.simulated());
    const Strategy start = with_all_rules(built_in_strategy(seed % 2 == 0 ? "data" : "single", net, 2), net);
    const auto choices = cut_choices(net, 2, "ncdhwr", start);
    Seconds least{std::numeric_limits<double>::infinity()};
    int strategies = 0;
    for_each(start, net, choices, 0, [&](const Strategy& strategy) {
      ++strategies;
      least = std::min(least, seconds(strategy));
    });
    const FoundCuts found = search_cuts(start, net, choices, strategy_costs(machine.simulated(), net, 1),
                                        {.most_tried = 1'000'000});
    EXPECT_EQ(found.seconds, least);
    EXPECT_EQ(found.lower_bound, least);
    EXPECT_EQ(seconds(found.strategy), found.seconds);
    gained += found.seconds < found.before;
    spared += strategies - found.tried;
    all += strategies;
  }
  EXPECT_GT(gained, static_cast<int>(end - first) / 4);
  EXPECT_GT(spared, all / 4);
}

TEST(SearchCuts, BoundsWhatItHasNotTried) {
  const Network net = testing::NetBuilder().conv("a", "data").conv("b", "a").loss("b", "data").build();
  RandomChoices random(3);
  const DeviceGraph graph = random_machine(random);
  AbsentMachine machine(graph);
  const Strategy start = with_all_rules(built_in_strategy("single", net, 2), net);
  const auto choices = cut_choices(net, 2, "ncdhwr", start);
  const StrategyCosts costs = strategy_costs(machine.simulated(), net, 1);
  const FoundCuts best = search_cuts(start, net, choices, costs, {.most_tried = 1'000'000});
  const FoundCuts few = search_cuts(start, net, choices, costs, {.most_tried = 3});
  EXPECT_EQ(few.tried, 3);
  EXPECT_LE(few.lower_bound, best.seconds);
  EXPECT_GE(few.seconds, best.seconds);
  EXPECT_GT(few.lower_bound.count, 0);
}

// The start alone may take more.
TEST(SearchCuts, KeepsToTheLimitOfMemory) {
  const Network net = testing::NetBuilder().conv("a", "data").loss("a", "data").build();
  RandomChoices random(3);
  const DeviceGraph graph = random_machine(random);
  AbsentMachine machine(graph);
  const Strategy start = with_all_rules(built_in_strategy("data", net, 2), net);
  const auto choices = cut_choices(net, 2, "ncdhwr", start);
  const auto search = [&](Bytes limit) {
    return search_cuts(start, net, choices, strategy_costs(machine.simulated(), net, 1, limit));
  };
  EXPECT_GT(search({}).tried, 1);
  EXPECT_LT(search({}).seconds, search({1}).seconds);
  EXPECT_EQ(search({1}).strategy, start);
}

}  // namespace
}  // namespace cortado
