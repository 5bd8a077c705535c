#pragma once

#include <cstdint>
#include <vector>

#include "cortado/parallel/layout.h"

namespace cortado {

// A layout as a grid: along each axis of the tensor the ranges that ranks hold, and which of them each rank
// has. Ranks hold every combination equally often, so that sums over ranks are products of sums over axes.
class GridLayout {
 public:
  struct Axis {
    std::vector<Range> ranges;
    std::vector<double> share;  // of the ranks, per range
    std::vector<int> of_rank;   // index into ranges; of no meaning where the rank holds nothing
    bool operator==(const Axis&) const = default;
  };

  explicit GridLayout(const Layout& layout);
  // False where ranks do not hold every combination equally often: then the above does not hold.
  bool is_grid() const;

  int ranks() const { return static_cast<int>(holds_.size()); }
  bool holds(int rank) const { return holds_[static_cast<size_t>(rank)]; }
  int holders() const { return holders_; }
  const std::vector<Axis>& axes() const { return axes_; }
  Range range(int rank, size_t axis) const {
    return axes_[axis].ranges[static_cast<size_t>(axes_[axis].of_rank[static_cast<size_t>(rank)])];
  }
  int64_t elements(int rank) const;  // that it holds
  bool operator==(const GridLayout&) const = default;

 private:
  std::vector<bool> holds_;
  int holders_ = 0;
  std::vector<Axis> axes_;
};

// The most that one device, or one node's network interface, sends or receives when a tensor moves.
struct ExchangeVolume {
  double inside = 0;       // bytes of a device, from or to devices of its node
  double across = 0;       // bytes of a device, from or to other nodes
  double node_across = 0;  // bytes of a node
  int messages = 0;        // that a device receives
  int64_t total = 0;       // bytes that move, of all devices
  bool nothing() const { return total == 0; }
};

// What moves so that every rank gets its box of `needed` (transfers() in parallel/layout.h, without making
// them): floats, from the owners, each element owned once. `node_of`: per rank. The adjoint moves as much.
ExchangeVolume exchange_volume(const GridLayout& owned, const GridLayout& needed,
                               const std::vector<int>& node_of);

}  // namespace cortado
