#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cortado/parallel/config.h"
#include "cortado/parallel/layout.h"

namespace cortado {

// A layout as a grid: along each axis of the tensor the ranges that ranks hold, and which of them each rank
// has. Ranks hold every combination equally often, so that sums over ranks are products of sums over axes.
// Copies share their content.
class GridLayout {
 public:
  struct Axis {
    std::vector<Range> ranges;  // in the order of the first rank that holds them
    std::vector<double> share;  // of the ranks, per range
    // Index into ranges. Of no meaning where a rank holds nothing; there, as if the ranks that do went on.
    std::vector<int> of_rank;
    bool operator==(const Axis&) const = default;
  };

  explicit GridLayout(const Layout& layout);
  // What box_of(index) gives for the devices of a configuration, from few of them: every axis is taken to
  // depend on the coordinates that change it alone. An empty box: the device holds nothing.
  GridLayout(const ParallelConfig& config, int ranks, const std::function<Box(int)>& box_of);
  // False where ranks do not hold every combination equally often: then the above does not hold.
  bool is_grid() const;

  int ranks() const { return static_cast<int>(content_->holds.size()); }
  bool holds(int rank) const { return content_->holds[static_cast<size_t>(rank)] != 0; }
  int holders() const { return content_->holders; }
  const std::vector<Axis>& axes() const { return content_->axes; }
  const Range& range(int rank, size_t axis) const {
    const Axis& of = axes()[axis];
    return of.ranges[static_cast<size_t>(of.of_rank[static_cast<size_t>(rank)])];
  }
  int64_t elements(int rank) const;  // that it holds
  int64_t most_elements() const;     // that any rank holds; 0: none does
  int first_with_most() const;       // the lowest rank that holds so many; -1: none does
  // Ranks that hold the same box, each list in order, the lists in the order of their first ranks.
  std::vector<std::vector<int>> replicas() const;
  bool operator==(const GridLayout& other) const {
    return content_ == other.content_ || (content_->hash == other.content_->hash && same(other));
  }

 private:
  struct Content {
    std::vector<char> holds;
    int holders = 0;
    std::vector<Axis> axes;
    size_t hash = 0;
  };
  bool same(const GridLayout& other) const;
  // From which of an axis' ranges each rank has, the ranges perhaps empty or equal.
  void add_axis(Content& content, const std::vector<Range>& ranges, std::vector<int> of_rank);
  void finish(Content content);

  std::shared_ptr<const Content> content_;
};

}  // namespace cortado
