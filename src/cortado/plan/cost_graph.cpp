#include "cortado/plan/cost_graph.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "cortado/base/error.h"
#include "cortado/plan/threads.h"

namespace cortado::plan {
namespace {

// What is to know of many costs. By their bits, as vectors compare integers whatever order they come in.
struct CostFacts {
  bool valid = true;      // each is a number or +infinity
  bool infinite = false;  // one is
  double largest = 0;     // of the finite ones
};

CostFacts facts_of(std::span<const double> costs) {
  constexpr auto limit = std::numeric_limits<double>::infinity();
  constexpr auto infinity = std::bit_cast<int64_t>(limit), less = std::bit_cast<int64_t>(-limit);
  int64_t largest = 0, wrong = 0, infinite = 0;
  for (double cost : costs) {
    const auto bits = std::bit_cast<int64_t>(cost);
    const int64_t size = bits & std::numeric_limits<int64_t>::max(), finite = size < infinity ? size : 0;
    wrong |= size > infinity ? 1 : 0;
    wrong |= bits == less ? 1 : 0;
    infinite |= size == infinity ? 1 : 0;
    largest = finite > largest ? finite : largest;
  }
  return {wrong == 0, infinite != 0, std::bit_cast<double>(largest)};
}

CostFacts checked(std::span<const double> costs) {
  const CostFacts facts = facts_of(costs);
  ensure(facts.valid, "a cost is a number or +infinity");
  return facts;
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
  checked(seconds);
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
  edges_.push_back(checked_edge(from, to, std::move(seconds)));
}

CostGraph::Edge CostGraph::checked_edge(int from, int to, Costs seconds) {
  const CostFacts facts = checked(*seconds);
  return {from, to, std::move(seconds), facts.largest, facts.infinite};
}

void CostGraph::set_seconds(int vertex, int candidate, double seconds) {
  ensure(vertex >= 0 && vertex < size() && candidate >= 0 && candidate < candidates(vertex),
         "a candidate of the graph");
  checked({&seconds, 1});
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

CostGraph with_free_candidates(const CostGraph& graph, std::span<const double> seconds) {
  CostGraph result;
  for (int v = 0; v < graph.size(); ++v) {
    std::vector<double> costs = graph.vertices()[v].seconds;
    costs.push_back(seconds[v]);
    result.add_vertex(graph.vertices()[v].name, std::move(costs));
  }
  std::map<const std::vector<double>*, Costs> known;  // edges that share their costs go on to
  for (const CostGraph::Edge& edge : graph.edges()) {
    Costs& wider = known[edge.seconds.get()];
    if (!wider) {
      const int64_t rows = graph.candidates(edge.from), columns = graph.candidates(edge.to);
      std::vector<double> costs(static_cast<size_t>((rows + 1) * (columns + 1)));
      for (int64_t r = 0; r < rows; ++r)
        std::copy_n(edge.seconds->begin() + r * columns, columns, costs.begin() + r * (columns + 1));
      wider = std::make_shared<const std::vector<double>>(std::move(costs));
    }
    result.add_edge(edge.from, edge.to, wider);
  }
  return result;
}

double quantum_of(const CostGraph& graph) {
  double total = 0;
  for (const CostGraph::Vertex& vertex : graph.vertices()) total += facts_of(vertex.seconds).largest;
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
  // Edges that share their costs share what they are rounded to.
  std::map<const std::vector<double>*, size_t> numbers;
  std::vector<const std::vector<double>*> exact;
  double total = 0;
  for (const CostGraph::Edge& edge : graph.edges()) {
    if (!numbers.emplace(edge.seconds.get(), exact.size()).second) continue;
    exact.push_back(edge.seconds.get());
    total += static_cast<double>(edge.seconds->size());
  }
  std::vector<Costs> costs(exact.size());
  parallel_for_work(static_cast<int64_t>(costs.size()), total, [&](int64_t i) {
    auto values = std::make_shared<std::vector<double>>(exact[i]->size());
    std::ranges::transform(*exact[i], values->begin(), round);
    costs[i] = std::move(values);
  });
  for (const CostGraph::Edge& edge : graph.edges()) {
    result.add_edge(
        {edge.from, edge.to, costs[numbers.at(edge.seconds.get())], round(edge.largest), edge.infinite});
  }
  return result;
}

}  // namespace cortado::plan
