#pragma once

#include <cstdint>
#include <vector>

#include "cortado/base/element_type.h"
#include "cortado/base/units.h"
#include "cortado/cost/grid_layout.h"

namespace cortado {

// The most that one device, or one node's network interface, sends or receives when a tensor moves.
struct ExchangeVolume {
  double inside = 0;       // bytes of a device, from or to devices of its node
  double across = 0;       // bytes of a device, from or to other nodes
  double node_inside = 0;  // bytes that all devices of a node send to each other
  double node_across = 0;  // bytes of a node
  int messages = 0;        // that a device receives
  Bytes total;             // that move, of all devices
  bool nothing() const { return total == Bytes{}; }
};

// What moves so that every rank gets its box of a `needed` layout from the owners of an `owned` one: the same
// as transfers() in parallel/layout.h, without making them. Each element is owned once. The adjoint
// moves as much. `node_of`: per rank, in order. Ranks that need the same box, hold it among themselves, and
// give nothing to others, move it round a ring (ring_group in parallel/collectives.h): each rank sends only
// to the next one.
//
// How much a rank has of another's box is a product over axes of what their ranges share. A planner asks
// about all pairs of many layouts, which are made of few kinds of axes. So each pair of kinds gets one array
// over ranks. A volume takes one array per axis, multiplies them, and looks for the maxima. Layouts that
// begin with the same kinds share that part of the product.
//
// Movements (program/movement.h) come from transfers() instead: a program needs the boxes of the few layouts
// that it has. A planner needs only bytes, but of all pairs of layouts, where listing boxes takes far too
// long. tests/cost/exchange_volume_test.cpp proves that both move the same.
class ExchangeVolumes {
 public:
  ExchangeVolumes(const std::vector<GridLayout>& owned, const std::vector<GridLayout>& needed,
                  const std::vector<int>& node_of, ElementType type = ElementType::f32);

  // Room for one thread's calls of row().
  struct Room {
    std::vector<std::vector<double>> products;  // of holders and so many axes, arrays over ranks
  };
  Room room() const;
  double operations() const { return static_cast<double>(arrays_ * ranks_); }  // for a volume, about
  // Volumes from one owned layout to each needed one.
  std::vector<ExchangeVolume> row(size_t owned, Room& room) const;

 private:
  // The layouts of one side: the kind of each axis, and the kind of their holders (which ranks hold
  // something).
  struct Side {
    std::vector<std::vector<int>> kinds;                 // per layout: per axis, then of the holders
    std::vector<std::vector<GridLayout::AxisPtr>> axes;  // per axis: its kinds
    std::vector<GridLayout> holders;                     // per kind of holders: a layout of it
  };
  static Side side_of(const std::vector<GridLayout>& layouts);
  // Ranks that need the same box of a layout.
  struct Rings {
    int members = 1;        // of each
    std::vector<int> next;  // per rank: the next one of its ring; -1: it needs nothing
  };
  static Rings rings_of(const GridLayout& needed);
  bool goes_round(size_t needed, const double* product) const;
  ExchangeVolume of_rings(size_t needed, const double* product, Room& room) const;
  void set_nodes(const std::vector<int>& node_of);
  void fill(const GridLayout::Axis& owned, const GridLayout::Axis& needed, double* block) const;
  void fill_holders(const GridLayout& owned, const GridLayout& needed, double* block) const;
  const double* block(size_t axis, int from_kind, int to_kind) const;
  ExchangeVolume of_one_node(const double* elements, const double* product) const;
  ExchangeVolume of_nodes(const double* elements, double* product, Room& room) const;

  double element_bytes_;
  size_t ranks_ = 0, arrays_ = 0;   // arrays over ranks in a block
  std::vector<size_t> node_begin_;  // the first rank of each node, and how many there are; empty: one node
  std::vector<std::vector<int>> mates_;  // per array of neighbours: of each rank one of its node; -1: none
  Side owned_, needed_;
  std::vector<std::vector<double>> blocks_;    // of holders, then per axis: kinds of owned by kinds of needed
  std::vector<std::vector<double>> elements_;  // per needed layout: of each rank
  std::vector<Rings> rings_;                   // per needed layout
  std::vector<size_t> node_of_;                // per rank
  std::vector<size_t> order_;                  // of needed layouts, by their kinds
};

// The same for one pair.
ExchangeVolume exchange_volume(const GridLayout& owned, const GridLayout& needed,
                               const std::vector<int>& node_of, ElementType type = ElementType::f32);

}  // namespace cortado
