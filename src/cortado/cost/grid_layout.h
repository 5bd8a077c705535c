#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "cortado/parallel/layout.h"

namespace cortado {

// A layout as a grid: along each axis of the tensor the ranges that ranks hold, and which of them each rank
// has. Ranks hold every combination equally often, so that sums over ranks are products of sums over axes.
// Copies share their content, layouts their axes.
class GridLayout {
 public:
  struct Axis {
    std::vector<Range> ranges;  // in the order of the first rank that holds them
    std::vector<double> share;  // of the ranks, per range
    // Index into ranges. Where a rank holds nothing it means nothing: the pattern of the others is carried
    // on.
    std::vector<int> of_rank;
    int64_t most = 0;  // size of the largest range
    size_t hash = 0;

    Axis(std::vector<Range> ranges, std::vector<double> share, std::vector<int> of_rank);
    bool operator==(const Axis&) const = default;
  };
  using AxisPtr = std::shared_ptr<const Axis>;
  // The axes of a tensor, without memory of their own: planners make very many layouts.
  class Axes {
   public:
    void push_back(AxisPtr axis) { list_[size_++] = std::move(axis); }
    size_t size() const { return size_; }
    const AxisPtr& operator[](size_t axis) const { return list_[axis]; }
    const AxisPtr* begin() const { return list_.data(); }
    const AxisPtr* end() const { return list_.data() + size_; }

   private:
    std::array<AxisPtr, Shape::max_rank> list_;
    size_t size_ = 0;
  };

  explicit GridLayout(const Layout& layout);
  // The first `holders` ranks hold boxes that have these axes.
  GridLayout(int ranks, int holders, Axes axes);
  // False where ranks do not hold every combination equally often: then the above does not hold.
  bool is_grid() const;

  int ranks() const { return content_->ranks; }
  bool holds(int rank) const {
    return content_->holds.empty() ? rank < holders() : content_->holds[static_cast<size_t>(rank)] != 0;
  }
  int holders() const { return content_->holders; }
  bool first_ranks_hold() const { return content_->holds.empty(); }
  const Axes& axes() const { return content_->axes; }
  const Range& range(int rank, size_t axis) const {
    const Axis& of = *axes()[axis];
    return of.ranges[static_cast<size_t>(of.of_rank[static_cast<size_t>(rank)])];
  }
  Box box(int rank) const;           // that it holds
  int64_t elements(int rank) const;  // the same
  int64_t most_elements() const;     // that any rank holds; 0: none does
  int first_with_most() const;       // the lowest rank that holds so many; -1: none does
  // The boxes that there are, and the number of that which a rank holds.
  size_t places() const;
  size_t place(int rank) const;
  // Ranks that hold the same box, each list in order, the lists in the order of their first ranks.
  std::vector<std::vector<int>> replicas() const;
  bool operator==(const GridLayout& other) const;
  size_t hash() const { return content_->hash; }  // of equal layouts the same
  // The same of all copies, and of no other layout while one of them lives.
  const void* identity() const { return content_.get(); }

 private:
  struct Content {
    int ranks = 0, holders = 0;
    std::vector<char> holds;  // empty: the first ones
    Axes axes;
    size_t hash = 0;
    Content(int ranks, int holders, std::vector<char> holds, Axes axes);
  };
  std::shared_ptr<const Content> content_;
};

}  // namespace cortado
