// The exact search on random costs over the topologies of networks: seconds, tables, products. Random costs
// are the hard case: pruning hardly helps. plan_search [MOST_CANDIDATES [TOPOLOGY]]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/base/parallel_for.h"
#include "cortado/plan/frontier.h"
#include "cortado/plan/limited_search.h"
#include "cortado/plan/search.h"

namespace {

using namespace cortado;
using namespace cortado::plan;
using Edges = std::vector<std::pair<int, int>>;

struct Topology {
  std::string name;
  int vertices = 0;
  Edges edges;

  int then(int from) {
    edges.push_back({from, vertices});
    return vertices++;
  }
  int chain(int from, int length) {
    for (int i = 0; i < length; ++i) from = then(from);
    return from;
  }
};

Topology chain(int length) {
  Topology topology{fmt::format("chain of {}", length), 1, {}};
  topology.chain(0, length - 1);
  return topology;
}

// Inception-v3's modules: branches of 1, 2, 3 and 2 layers between two concatenations.
Topology inception() {
  Topology topology{"inception", 1, {}};
  int last = topology.chain(0, 6);
  for (int module = 0; module < 11; ++module) {
    std::vector<int> ends;
    for (int length : {1, 2, 3, 2}) ends.push_back(topology.chain(last, length));
    last = topology.vertices++;
    for (int end : ends) topology.edges.push_back({end, last});
  }
  topology.chain(last, 2);
  return topology;
}

// Nearly 200 products of K^3: eleven branches of 18 layers between two vertices.
Topology braid() {
  Topology topology{"braid", 2, {}};
  for (int branch = 0; branch < 11; ++branch) topology.edges.push_back({topology.chain(0, 18), 1});
  return topology;
}

// DenseNet-121's blocks: two layers read the concatenation so far and are concatenated to it.
Topology densenet() {
  Topology topology{"densenet", 1, {}};
  int last = topology.chain(0, 2);
  for (int layers : {6, 12, 24, 16}) {
    for (int layer = 0; layer < layers; ++layer) {
      const int end = topology.chain(last, 2);
      last = topology.then(last);
      topology.edges.push_back({end, last});
    }
    last = topology.chain(last, 2);
  }
  return topology;
}

// U-Net: two layers a level down, two a level up, which also read the level's.
Topology u_net() {
  Topology topology{"u-net", 1, {}};
  std::vector<int> levels;
  int last = 0;
  for (int level = 0; level < 5; ++level) {
    last = topology.chain(last, 2);
    levels.push_back(last);
    last = topology.then(last);
  }
  for (; !levels.empty(); levels.pop_back()) {
    last = topology.chain(last, 2);
    topology.edges.push_back({levels.back(), last});
    last = topology.chain(last, 2);
  }
  return topology;
}

// A block whose layers read all earlier ones directly: tables over many layers.
Topology all_to_all(int layers) {
  Topology topology{fmt::format("all-to-all of {}", layers), layers, {}};
  for (int a = 0; a < layers; ++a)
    for (int b = a + 1; b < layers; ++b) topology.edges.push_back({a, b});
  return topology;
}

CostGraph graph_of(const Topology& topology, int candidates) {
  std::mt19937 random(1);
  auto costs = [&](int64_t count) {
    std::vector<double> values(static_cast<size_t>(count));
    for (double& value : values) value = static_cast<double>(random()) * 0x1p-32;
    return values;
  };
  CostGraph graph;
  for (int v = 0; v < topology.vertices; ++v) {
    std::vector<Bytes> bytes(static_cast<size_t>(candidates));
    for (Bytes& count : bytes) count.count = static_cast<int64_t>(random() % (1 << 24));
    graph.add_vertex(fmt::format("layer {}", v), costs(candidates), std::move(bytes));
  }
  for (const auto& [from, to] : topology.edges)
    graph.add_edge(from, to, costs(int64_t{candidates} * candidates));
  return graph;
}

// Wall-clock seconds / seconds of processors, which tell more where others use them too.
std::string timed(const std::function<void()>& once) {
  const auto begin = std::chrono::steady_clock::now();
  const std::clock_t processors = std::clock();
  try {
    once();
  } catch (const UserError&) {
    return "refused";
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  return fmt::format("{:.3f} / {:.3f}", wall.count(),
                     static_cast<double>(std::clock() - processors) / CLOCKS_PER_SEC);
}

void measure(const Topology& topology, int candidates) {
  const CostGraph graph = graph_of(topology, candidates);
  Optimum found;
  const std::string search_seconds = timed([&] { found = search(graph); });
  const std::string marginal_seconds = timed([&] { min_marginals(graph); });
  const SearchStatistics& s = found.statistics;
  fmt::print("{:<16} {:>8} {:>6} {:>4} {:>15} {:>15} {:>9.1f} {:>9.1f} {:>10.3g} {:>6} {:>6} {:>6} {:>7}\n",
             topology.name, topology.vertices, topology.edges.size(), candidates, search_seconds,
             marginal_seconds, static_cast<double>(s.tables.count) / 1e6,
             static_cast<double>(s.largest_table.count) / 1e6, s.products, s.eliminations.leaves,
             s.eliminations.nodes, s.eliminations.edges, s.eliminations.general);
  std::fflush(stdout);
}

// The frontier of seconds against bytes, and searches at three limits between its ends.
void measure_limits(const Topology& topology, int candidates) {
  const CostGraph graph = graph_of(topology, candidates);
  std::vector<FrontierPoint> corners;
  const std::string frontier_seconds = timed([&] { corners = frontier(graph); });
  fmt::print("{:<16} {:>4} {:>8} {:>17}", topology.name, candidates, corners.size(), frontier_seconds);
  for (int quarter : {1, 2, 3}) {
    const int64_t fewest = corners.front().bytes.count, most = corners.back().bytes.count;
    LimitedOptimum found;
    const std::string seconds =
        timed([&] { found = search_within(graph, {fewest + (most - fewest) / 4 * quarter}); });
    fmt::print(
        "  {:>17} {:>9} {}", seconds, found.points,
        found.proven ? "proven" : fmt::format("gap {:.2g} %", 100 * found.gap().count / found.seconds.count));
  }
  fmt::print("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
  const int most = count > 1 ? std::atoi(words[1]) : 400;
  const std::string only = count > 2 ? words[2] : "";
  fmt::print("{} threads; MB of tables; additions\n", compute_threads());
  fmt::print("{:<16} {:>8} {:>6} {:>4} {:>15} {:>15} {:>9} {:>9} {:>10} {:>6} {:>6} {:>6} {:>7}\n",
             "topology", "vertices", "edges", "K", "search s", "marg. s", "tables", "largest", "products",
             "leaves", "nodes", "edges", "general");
  const std::vector<Topology> topologies = {chain(10), chain(30), inception(),  densenet(),
                                            u_net(),   braid(),   all_to_all(5)};
  for (const Topology& topology : topologies) {
    if (!topology.name.starts_with(only)) continue;
    for (int candidates : {5, 20, 60, 200, 400})
      if (candidates <= most) measure(topology, candidates);
  }
  fmt::print("\n{:<16} {:>4} {:>8} {:>17}  within 1/4, 1/2, 3/4 of the bytes: seconds, pairs\n", "topology",
             "K", "corners", "frontier s");
  for (const Topology& topology : topologies) {
    if (!topology.name.starts_with(only)) continue;
    for (int candidates : {5, 20, 60})
      if (candidates <= most) measure_limits(topology, candidates);
  }
}
