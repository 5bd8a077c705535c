#include "tests/plan/graphs.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace cortado::plan {
namespace {

class Draw {
 public:
  Draw(uint64_t seed, const GraphShape& shape) : random_(seed), shape_(shape) {}
  int whole(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  double real() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  double cost() {
    if (shape_.infinite && whole(0, 5) == 0) return std::numeric_limits<double>::infinity();
    return shape_.ties ? whole(0, 3) : real();
  }

 private:
  std::mt19937_64 random_;
  const GraphShape& shape_;
};

}  // namespace

Cases::Cases(int usual) : count(usual) {
  if (const char* text = std::getenv("CORTADO_PLAN_SEED")) first = std::strtoull(text, nullptr, 10);
  if (const char* text = std::getenv("CORTADO_PLAN_CASES")) count = std::atoi(text);
}

CostGraph random_graph(uint64_t seed, const GraphShape& shape) {
  Draw draw(seed, shape);
  CostGraph graph;
  const int vertices = draw.whole(1, shape.most_vertices);
  for (int v = 0; v < vertices; ++v) {
    std::vector<double> seconds;
    std::vector<Bytes> bytes;
    for (int a = draw.whole(1, shape.most_candidates); a > 0; --a) {
      seconds.push_back(draw.cost());
      bytes.push_back({draw.whole(0, 40) + static_cast<int>(60 * (1 - std::min(seconds.back(), 1.0)))});
    }
    graph.add_vertex("v" + std::to_string(v), std::move(seconds), std::move(bytes));
  }
  const double density = draw.real();
  for (int from = 0; from < vertices; ++from) {
    for (int to = 0; to < vertices; ++to) {
      if (from == to || draw.real() > density) continue;
      std::vector<double> seconds(static_cast<size_t>(graph.candidates(from) * graph.candidates(to)));
      for (double& cost : seconds) cost = draw.cost();
      graph.add_edge(from, to, std::move(seconds));
    }
  }
  return graph;
}

CostGraph reordered(const CostGraph& graph, const std::vector<int>& order) {
  CostGraph result;
  std::vector<int> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = static_cast<int>(i);
    const CostGraph::Vertex& vertex = graph.vertices()[order[i]];
    result.add_vertex(vertex.name, vertex.seconds, vertex.bytes);
  }
  for (const CostGraph::Edge& edge : graph.edges())
    result.add_edge(place[edge.from], place[edge.to], edge.seconds);
  return result;
}

CostGraph graph_of(uint64_t seed, int vertices, int candidates,
                   const std::vector<std::pair<int, int>>& edges) {
  std::mt19937_64 random(seed);
  auto costs = [&](int64_t count) {
    std::vector<double> values(static_cast<size_t>(count));
    for (double& value : values) value = std::uniform_real_distribution<double>(0, 1)(random);
    return values;
  };
  CostGraph graph;
  for (int v = 0; v < vertices; ++v) {
    std::vector<Bytes> bytes(static_cast<size_t>(candidates));
    for (Bytes& count : bytes) count.count = std::uniform_int_distribution<int>(0, 1'000'000)(random);
    graph.add_vertex("v" + std::to_string(v), costs(candidates), std::move(bytes));
  }
  for (const auto& [from, to] : edges) graph.add_edge(from, to, costs(int64_t{candidates} * candidates));
  return graph;
}

}  // namespace cortado::plan
