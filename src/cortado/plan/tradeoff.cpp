#include "cortado/plan/tradeoff.h"

#include <algorithm>
#include <queue>

#include "cortado/base/error.h"

namespace cortado::plan {
namespace {

// Costs of one graph and so many times those of another.
CostGraph combined(const CostGraph& graph, const CostGraph& other, double multiplier) {
  ensure(graph.size() == other.size() && graph.edges().size() == other.edges().size(),
         "graphs of the same vertices and edges");
  const auto sum = [&](const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> costs(a.size());
    for (size_t i = 0; i < a.size(); ++i) costs[i] = a[i] + multiplier * b[i];
    return costs;
  };
  CostGraph result;
  for (int v = 0; v < graph.size(); ++v)
    result.add_vertex(graph.vertices()[v].name,
                      sum(graph.vertices()[v].seconds, other.vertices()[v].seconds));
  for (size_t e = 0; e < graph.edges().size(); ++e) {
    const auto &edge = graph.edges()[e], &beside = other.edges()[e];
    result.add_edge(edge.from, edge.to, sum(*edge.seconds, *beside.seconds));
  }
  return result;
}

// Two corners between which there may be more, and the area in which they would lie.
struct CornerPair {
  double area = 0;
  size_t left = 0, right = 0;
  bool operator<(const CornerPair& other) const { return area < other.area; }
};

}  // namespace

bool is_tradeoff(const Tradeoffs::Point& fewer_bytes, const Tradeoffs::Point& less_seconds) {
  return fewer_bytes.bytes < less_seconds.bytes && fewer_bytes.seconds > less_seconds.seconds;
}

double multiplier_between(const Tradeoffs::Point& fewer_bytes, const Tradeoffs::Point& less_seconds) {
  ensure(is_tradeoff(fewer_bytes, less_seconds), "neither is better in both");
  return (fewer_bytes.seconds - less_seconds.seconds) / (less_seconds.bytes - fewer_bytes.bytes);
}

Tradeoffs::Point Tradeoffs::point(std::vector<int> assignment) const {
  const double seconds = seconds_.seconds(assignment), bytes = bytes_.seconds(assignment);
  return {std::move(assignment), seconds, bytes};
}

Tradeoffs::Point Tradeoffs::at(double multiplier) const {
  return point(search(combined(seconds_, bytes_, multiplier)).assignment);
}

std::vector<Tradeoffs::Point> Tradeoffs::corners(int most) const {
  std::vector<Point> found{fewest_bytes(), least_seconds()};
  std::priority_queue<CornerPair> open;
  const auto push = [&](size_t left, size_t right) {
    const Point &a = found[left], &b = found[right];
    if (is_tradeoff(a, b)) open.push({(a.seconds - b.seconds) * (b.bytes - a.bytes), left, right});
  };
  push(0, 1);
  while (!open.empty() && std::ssize(found) < most) {
    const auto [area, left, right] = open.top();
    open.pop();
    const double multiplier = multiplier_between(found[left], found[right]);
    Point middle = at(multiplier);
    const double line = found[left].seconds + multiplier * found[left].bytes;
    if (middle.seconds + multiplier * middle.bytes >= line * (1 - 1e-9)) continue;
    found.push_back(std::move(middle));
    push(left, found.size() - 1);
    push(found.size() - 1, right);
  }
  std::ranges::sort(found, {}, &Point::bytes);
  return found;
}

}  // namespace cortado::plan
