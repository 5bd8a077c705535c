#include "cortado/plan/frontier.h"

#include <algorithm>
#include <cmath>

#include "cortado/plan/multiplier.h"

namespace cortado::plan {
namespace {

// Whether `point` lies below the line between the others, by more than rounding.
bool is_below(const FrontierPoint& left, const FrontierPoint& right, const FrontierPoint& point) {
  const double width = static_cast<double>(right.bytes.count - left.bytes.count);
  const double along = static_cast<double>(point.bytes.count - left.bytes.count);
  const double area = (left.seconds - point.seconds) * width - (left.seconds - right.seconds) * along;
  return area > 1e-11 * (std::abs(left.seconds) + std::abs(right.seconds)) * width;
}

// Corners between two points, found by looking below the line between them.
void add_between(Multipliers& search, const FrontierPoint& left, const FrontierPoint& right,
                 std::vector<FrontierPoint>& found) {
  if (left.bytes >= right.bytes || left.seconds <= right.seconds) return;
  double multiplier = 0;
  const FrontierPoint middle = search.between(left, right, multiplier);
  if (!is_below(left, right, middle)) return;
  add_between(search, left, middle, found);
  found.push_back(middle);
  add_between(search, middle, right, found);
}

}  // namespace

std::vector<FrontierPoint> frontier(const CostGraph& graph, const SearchOptions& options) {
  Multipliers search(graph, options);
  std::vector<FrontierPoint> found{search.fewest_bytes()};
  const FrontierPoint last = search.least_seconds();
  add_between(search, FrontierPoint(found[0]), last, found);
  found.push_back(last);
  // The ends may be beaten by an assignment that has as few bytes, or seconds, and less of the other.
  // And a search may have met an assignment on the line between two corners.
  std::vector<FrontierPoint> corners;
  std::ranges::stable_sort(found, [](const FrontierPoint& a, const FrontierPoint& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.seconds < b.seconds;
  });
  for (FrontierPoint& point : found) {
    if (!corners.empty() && point.seconds >= corners.back().seconds) continue;
    while (corners.size() > 1 && !is_below(corners[corners.size() - 2], point, corners.back()))
      corners.pop_back();
    corners.push_back(search.original(std::move(point)));
  }
  return corners;
}

}  // namespace cortado::plan
