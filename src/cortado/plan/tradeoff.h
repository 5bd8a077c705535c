#pragma once

#include <vector>

#include "cortado/plan/search.h"

namespace cortado::plan {

// Seconds against bytes where edges have bytes, too. Two graphs of the same vertices, candidates and edges:
// the costs of one are seconds, those of the other bytes. Assignments are found as optima of seconds +
// multiplier * bytes, a search each: corners of the lower convex hull of all (bytes, seconds). (frontier.h
// has bytes of vertices alone, and finds what lies above the hull as well.)
class Tradeoffs {
 public:
  struct Point {
    std::vector<int> assignment;
    double seconds = 0, bytes = 0;
  };

  Tradeoffs(const CostGraph& seconds, const CostGraph& bytes) : seconds_(seconds), bytes_(bytes) {}

  Point point(std::vector<int> assignment) const;
  Point least_seconds() const { return point(search(seconds_).assignment); }
  Point fewest_bytes() const { return point(search(bytes_).assignment); }
  Point at(double multiplier) const;

  // Returns at most `most` corners, the ends among them, by bytes; those first that stand out furthest.
  std::vector<Point> corners(int most) const;

 private:
  const CostGraph &seconds_, &bytes_;
};

// The multiplier at which two points cost the same. Nothing where one is no worse in both.
double multiplier_between(const Tradeoffs::Point& fewer_bytes, const Tradeoffs::Point& less_seconds);
bool is_tradeoff(const Tradeoffs::Point& fewer_bytes, const Tradeoffs::Point& less_seconds);

}  // namespace cortado::plan
