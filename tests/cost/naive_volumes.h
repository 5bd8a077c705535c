#pragma once

#include <cstdint>
#include <vector>

#include "cortado/cost/exchange_volume.h"

namespace cortado::testing {

// ExchangeVolumes (cost/exchange_volume.h) with an array over all ranks in place of classes of equal nodes.
class NaiveVolumes {
 public:
  NaiveVolumes(const std::vector<GridLayout>& owned, const std::vector<GridLayout>& needed,
               const std::vector<int>& node_of, ElementType type = ElementType::f32);

  // Room for one thread's calls of row().
  struct Room {
    std::vector<std::vector<double>> products;  // of holders and so many axes, arrays over ranks
  };
  Room room() const;
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

}  // namespace cortado::testing
