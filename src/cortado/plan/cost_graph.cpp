#include "cortado/plan/cost_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "cortado/base/error.h"
#include "cortado/plan/threads.h"

namespace cortado::plan {
namespace {

void check_cost(double cost) {
  ensure(!std::isnan(cost) && cost != -std::numeric_limits<double>::infinity(),
         "a cost is a number or +infinity");
}

double largest_of(const std::vector<double>& costs) {
  double largest = 0;
  for (double cost : costs) largest = std::max(largest, std::isfinite(cost) ? std::abs(cost) : 0.0);
  return largest;
}

std::vector<double> transposed(const std::vector<double>& values, int64_t rows, int64_t columns) {
  std::vector<double> result(values.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) result[c * rows + r] = values[r * columns + c];
  return result;
}

// Adds and takes away 1.5 * 2^52 quanta: what is left was rounded to whole quanta. Infinity stays.
struct Rounding {
  explicit Rounding(double quantum) : shift(quantum * 0x1.8p52) {}
  double operator()(double cost) const { return (cost + shift) - shift; }
  double shift;
};

}  // namespace

int CostGraph::add_vertex(std::string name, std::vector<double> seconds, std::vector<Bytes> bytes) {
  ensure(!seconds.empty(), "a vertex has a candidate");
  ensure(bytes.empty() || bytes.size() == seconds.size(), "bytes for each candidate");
  for (double cost : seconds) check_cost(cost);
  for (Bytes count : bytes) ensure(count.count >= 0, "bytes are not negative");
  bytes.resize(seconds.size());
  vertices_.push_back({std::move(name), std::move(seconds), std::move(bytes)});
  return size() - 1;
}

void CostGraph::add_edge(int from, int to, std::vector<double> seconds) {
  add_edge(from, to, std::make_shared<std::vector<double>>(std::move(seconds)));
}

void CostGraph::add_edge(int from, int to, Costs seconds) {
  ensure(from >= 0 && from < size() && to >= 0 && to < size() && from != to, "an edge joins two vertices");
  ensure(seconds && static_cast<int64_t>(seconds->size()) == int64_t{candidates(from)} * candidates(to),
         "a cost for each pair of candidates");
  Edge edge{from, to, std::move(seconds)};
  for (double cost : *edge.seconds) {
    check_cost(cost);
    edge.infinite |= std::isinf(cost);
  }
  edge.largest = largest_of(*edge.seconds);
  edges_.push_back(std::move(edge));
}

void CostGraph::set_seconds(int vertex, int candidate, double seconds) {
  ensure(vertex >= 0 && vertex < size() && candidate >= 0 && candidate < candidates(vertex),
         "a candidate of the graph");
  check_cost(seconds);
  vertices_[vertex].seconds[candidate] = seconds;
}

double CostGraph::seconds(std::span<const int> assignment) const {
  double sum = 0;
  for (int v = 0; v < size(); ++v) sum += vertices_[v].seconds[assignment[v]];
  for (const Edge& edge : edges_)
    sum += (*edge.seconds)[int64_t{assignment[edge.from]} * candidates(edge.to) + assignment[edge.to]];
  return sum;
}

Bytes CostGraph::bytes(std::span<const int> assignment) const {
  Bytes sum;
  for (int v = 0; v < size(); ++v) sum += vertices_[v].bytes[assignment[v]];
  return sum;
}

CostGraph without_parallel_edges(const CostGraph& graph, int* merged) {
  std::map<std::pair<int, int>, std::vector<const CostGraph::Edge*>> groups;
  for (const CostGraph::Edge& edge : graph.edges()) groups[std::minmax(edge.from, edge.to)].push_back(&edge);
  CostGraph result;
  for (const CostGraph::Vertex& vertex : graph.vertices())
    result.add_vertex(vertex.name, vertex.seconds, vertex.bytes);
  for (const auto& [ends, edges] : groups) {
    if (merged) *merged += static_cast<int>(edges.size()) - 1;
    if (edges.size() == 1 && edges[0]->from == ends.first) {
      result.add_edge(*edges[0]);
      continue;
    }
    const int64_t rows = graph.candidates(ends.first), columns = graph.candidates(ends.second);
    std::vector<double> sum(static_cast<size_t>(rows * columns));
    for (const CostGraph::Edge* edge : edges) {
      const std::vector<double> turned =
          edge->from == ends.first ? *edge->seconds : transposed(*edge->seconds, columns, rows);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += turned[i];
    }
    result.add_edge(ends.first, ends.second, std::move(sum));
  }
  return result;
}

double quantum_of(const CostGraph& graph) {
  double total = 0;
  for (const CostGraph::Vertex& vertex : graph.vertices()) total += largest_of(vertex.seconds);
  for (const CostGraph::Edge& edge : graph.edges()) total += edge.largest;
  return total > 0 ? std::ldexp(1.0, std::max(std::ilogb(total) - 44, -1000)) : 1.0;
}

CostGraph rounded(const CostGraph& graph, double quantum) {
  const Rounding round(quantum);
  CostGraph result;
  for (const CostGraph::Vertex& vertex : graph.vertices()) {
    std::vector<double> seconds = vertex.seconds;
    std::ranges::transform(seconds, seconds.begin(), round);
    result.add_vertex(vertex.name, std::move(seconds), vertex.bytes);
  }
  std::vector<Costs> costs(graph.edges().size());
  double total = 0;
  for (const CostGraph::Edge& edge : graph.edges()) total += static_cast<double>(edge.seconds->size());
  parallel_for_work(static_cast<int64_t>(costs.size()), total, [&](int64_t e) {
    auto values = std::make_shared<std::vector<double>>(*graph.edges()[e].seconds);
    std::ranges::transform(*values, values->begin(), round);
    costs[e] = std::move(values);
  });
  for (size_t e = 0; e < costs.size(); ++e) {
    const CostGraph::Edge& edge = graph.edges()[e];
    result.add_edge({edge.from, edge.to, std::move(costs[e]), round(edge.largest), edge.infinite});
  }
  return result;
}

}  // namespace cortado::plan
