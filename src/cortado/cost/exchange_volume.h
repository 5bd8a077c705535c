#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <memory_resource>
#include <span>
#include <unordered_map>
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
// about all pairs of many layouts, which are made of few kinds of axes, for up to thousands of ranks, of
// which most are alike. So for each pair of kinds the nodes are put into classes of equal ones, and each
// class has its values once. A volume takes the classes of each axis, multiplies the values of those that
// meet, and looks for the maxima. Layouts that begin with the same kinds share that part of the product.
// Which classes meet depends only on how the nodes are divided into them. There are few such divisions, so
// nodes are looked at once for each two of them, not for each two layouts.
//
// Movements (program/movement.h) come from transfers() instead: a program needs the boxes of the few layouts
// that it has. A planner needs only bytes, but of all pairs of layouts, where listing boxes takes far too
// long. tests/plan/movement_volume_test.cpp proves both equal.
class ExchangeVolumes {
 public:
  ExchangeVolumes(const std::vector<GridLayout>& owned, const std::vector<GridLayout>& needed,
                  const std::vector<int>& node_of, ElementType type = ElementType::f32);

  // Room for one thread's calls of row(). From row to row it remembers which nodes are equal, in about
  // `remembered` numbers.
  class Room;
  Room room(size_t remembered = size_t{1} << 25) const;
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
  // Units whose ranks have the same ranges along an axis.
  struct Patterns {
    std::vector<uint32_t> of_unit;
    size_t count = 0;
  };
  // Numbers of pairs, given in the order in which they are met.
  class PairNumbers {
   public:
    void clear(size_t pairs);           // forgets all; pairs: at most so many
    uint32_t& operator[](size_t pair);  // `unseen` until it is set
   private:
    std::vector<uint32_t> numbers_, times_;
    uint32_t time_ = 0;
  };
  // What two lists of ranges share.
  struct Shared {
    std::vector<double> meet;  // per needed range: owned ones that share something with it
    std::vector<double> mean;  // per owned range: what it shares with a reader's, the mean over readers
  };
  // A division of the units into classes, in the order of their first units.
  struct Division {
    std::vector<uint32_t> of_unit;  // its class
    std::vector<int> counts;        // units of each class
  };
  // Each division is there once; number 0 has all units in one class.
  class Divisions {
   public:
    explicit Divisions(size_t units) { number_of(std::vector<uint32_t>(units)); }
    size_t number_of(std::span<const uint32_t> of_unit);
    const Division& operator[](size_t number) const { return list_[number]; }

   private:
    std::deque<Division> list_;
    std::unordered_multimap<uint64_t, size_t> numbers_;  // by hash
  };
  // Where the classes of two divisions meet.
  struct Meeting {
    size_t division = 0;
    std::vector<std::pair<uint32_t, uint32_t>> classes;  // of the one and the other, per class of both
  };
  // Units in classes: those of a class have the same values.
  struct Classes {
    size_t division = 0, count = 0;
    std::pmr::vector<double> values;  // of each class: arrays by ranks of a unit; at least so many
  };
  // What the classes of two have where they meet: products of their values, which are not made yet.
  struct Product {
    size_t division = 0, count = 0;
    const double *left, *right;
    const Meeting* meeting;        // null: one of both has one class,
    size_t left_step, right_step;  // and moves so far from class to class
    size_t size;                   // of a class's values
    const double* left_of(size_t c) const {
      return left + (meeting ? meeting->classes[c].first * size : c * left_step);
    }
    const double* right_of(size_t c) const {
      return right + (meeting ? meeting->classes[c].second * size : c * right_step);
    }
  };
  // Arrays of a class, each over the ranks of a unit: what a rank has already, how many have some of its box,
  // what it sends to all, its box. After them, two for each mate, another rank of the node: what it receives
  // from the mate, and what it sends to it.
  enum Array : size_t { own, senders, sent, whole, first_mate };
  // Ranks that need the same box of a layout.
  struct Rings {
    int members = 1;        // of each
    std::vector<int> next;  // per rank: the next one of its ring; -1: it needs nothing
  };
  static Rings rings_of(const GridLayout& needed);
  size_t units() const { return unit_begin_.size() - 1; }
  void set_units(const std::vector<int>& node_of);
  Patterns patterns_of(const std::vector<int>& of_rank) const;
  std::vector<Patterns> patterns_of(const std::vector<GridLayout::AxisPtr>& axes) const;
  // What classes_by() works in.
  struct ClassRoom {
    PairNumbers met;
    std::vector<uint32_t> of_unit;  // its class
    std::vector<double> values;     // of a unit
    std::vector<double> distinct;   // of the classes
    std::vector<uint64_t> hashes;   // of the classes' values
  };
  template <typename Fill>
  Classes classes_by(const Patterns& owned, const Patterns& needed, ClassRoom& room, Fill&& fill);
  void add_axis(size_t axis);
  static Shared shared_of(const GridLayout::Axis& owned, const GridLayout::Axis& needed);
  void fill(const GridLayout::Axis& owned, const GridLayout::Axis& needed, const Shared& shared, size_t unit,
            double* values) const;
  Classes classes_of_holders(const GridLayout& owned, const GridLayout& needed);
  const Classes& block(size_t axis, int from_kind, int to_kind) const;
  const Meeting& meeting(const Classes& before, const Classes& by, Room& room) const;
  Product product(const Classes& before, const Classes& by, Room& room) const;
  void multiply(const Product& product, Classes& result) const;
  Product up_to(size_t axis, int from_kind, int to_kind, Room& room) const;
  // exchange_maxima.cpp
  bool goes_round(size_t needed, const Product& all) const;
  ExchangeVolume of_rings(size_t needed, const Product& all, Room& room) const;
  ExchangeVolume of_one_node(const Product& all, const Room& room) const;
  ExchangeVolume of_nodes(const Product& all, const Room& room) const;
  template <size_t known>
  ExchangeVolume of_nodes_of(const Product& all, const Room& room) const;

  double element_bytes_;
  size_t ranks_ = 0;
  // A unit is looked at as a whole: the ranks of a node, or with one node a single rank.
  bool one_node_ = true;
  size_t width_ = 1;                // ranks of the largest unit
  size_t arrays_ = 0;               // of values: over the ranks of a unit
  std::vector<size_t> unit_begin_;  // the first rank of each unit, and how many ranks there are
  std::vector<size_t> unit_of_;     // per rank
  Side owned_, needed_;
  Divisions divisions_{0};
  // What blocks_ lie in: very many small arrays, given back at once.
  std::unique_ptr<std::pmr::memory_resource> memory_ =
      std::make_unique<std::pmr::monotonic_buffer_resource>();
  std::vector<std::vector<Classes>> blocks_;  // of holders, then per axis: kinds of owned by kinds of needed
  Classes one_;                               // all units in one class, whose values are 1
  std::vector<Rings> rings_;                  // per needed layout
  std::vector<size_t> order_;                 // of needed layouts, by their kinds
};

class ExchangeVolumes::Room {
 private:
  friend class ExchangeVolumes;
  Room(const Divisions& of_axes, size_t remembered) : divisions_(of_axes), remembered_(remembered) {}
  std::vector<Classes> products_;  // of holders and so many axes
  Divisions divisions_;            // of the axes, and what comes of them
  std::unordered_map<uint64_t, Meeting> meetings_;
  size_t remembered_;
  PairNumbers met_;                             // classes
  std::vector<double> into_, out_of_, within_;  // by node
};

// The same for one pair.
ExchangeVolume exchange_volume(const GridLayout& owned, const GridLayout& needed,
                               const std::vector<int>& node_of, ElementType type = ElementType::f32);

}  // namespace cortado
