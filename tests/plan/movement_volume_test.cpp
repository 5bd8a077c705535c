// What the planner's closed form says that moves between two layouts is what the ranks' movements move.
#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "cortado/cost/exchange_volume.h"
#include "cortado/program/movement.h"
#include "cortado/program/volume.h"

namespace cortado {
namespace {

constexpr int axes = 4;

// The ranges of a random grid, per axis, and the index that a rank has along each of them.
struct Grid {
  std::vector<Range> ranges[axes];
  int cells() const {
    int cells = 1;
    for (const auto& axis : ranges) cells *= static_cast<int>(axis.size());
    return cells;
  }
  Box box(int cell) const {
    Box box = Box::whole(Shape{1, 1, 1, 1});
    for (int axis = 0; axis < axes; ++axis) {
      const int extent = static_cast<int>(ranges[axis].size());
      box[axis] = ranges[axis][static_cast<size_t>(cell % extent)];
      cell /= extent;
    }
    return box;
  }
};

class RandomLayouts {
 public:
  explicit RandomLayouts(uint32_t seed) : random_(seed), ranks_(2 + number(7)) {
    for (int axis = 0; axis < axes; ++axis) shape_[axis] = 4 + number(9);
    const Grid cut = disjoint();
    owned_ = layout(cut, 1);
    needed_ = number(2) == 0 ? layout(gathered(cut), 1) : fresh();
  }
  int ranks() const { return ranks_; }
  const Layout& owned() const { return owned_; }
  const Layout& needed() const { return needed_; }
  std::vector<int> node_of() {
    const int per_node = 1 + number(ranks_);
    std::vector<int> nodes;
    for (int rank = 0; rank < ranks_; ++rank) nodes.push_back(rank / per_node);
    return nodes;
  }

 private:
  int number(int below) { return static_cast<int>(random_() % static_cast<uint32_t>(below)); }

  // Cuts each axis at random places, into at most as many cells as there are ranks.
  Grid disjoint() {
    Grid grid;
    int cells = 1;
    for (int axis = 0; axis < axes; ++axis) {
      const int parts = 1 + number(std::min(4, ranks_ / cells));
      cells *= parts;
      std::vector<int64_t> places(static_cast<size_t>(shape_[axis]) - 1);
      std::iota(places.begin(), places.end(), 1);
      std::ranges::shuffle(places, random_);
      places.resize(static_cast<size_t>(parts) - 1);
      places.push_back(0), places.push_back(shape_[axis]);
      std::ranges::sort(places);
      for (size_t i = 0; i + 1 < places.size(); ++i) grid.ranges[axis].push_back({places[i], places[i + 1]});
    }
    return grid;
  }
  // Along each axis ranks need what they own, or all, or what they own and a halo.
  Grid gathered(Grid grid) {
    for (int axis = 0; axis < axes; ++axis) {
      const int kind = number(3), before = number(3), after = number(3);
      for (Range& range : grid.ranges[axis]) {
        if (kind == 1) range = {0, shape_[axis]};
        if (kind == 2)
          range = {std::max<int64_t>(0, range.begin - before), std::min(shape_[axis], range.end + after)};
      }
    }
    return grid;
  }
  // Another grid, which several ranks may hold alike.
  Layout fresh() {
    const Grid grid = gathered(disjoint());
    return layout(grid, 1 + number(ranks_ / grid.cells()));
  }
  Layout layout(const Grid& grid, int copies) const {
    Layout layout(static_cast<size_t>(ranks_));
    for (int rank = 0; rank < grid.cells() * copies; ++rank)
      layout[static_cast<size_t>(rank)] = grid.box(rank % grid.cells());
    return layout;
  }

  std::mt19937 random_;
  int ranks_;
  int64_t shape_[axes];
  Layout owned_, needed_;
};

// What all ranks' movements move.
class Counted {
 public:
  Counted(const Layout& owned, const Layout& needed, const std::vector<int>& node_of)
      : node_of_(node_of),
        in_near_(owned.size()),
        out_near_(owned.size()),
        in_far_(owned.size()),
        out_far_(owned.size()),
        node_near_(owned.size()),
        node_in_(owned.size()),
        node_out_(owned.size()) {
    for (int rank = 0; rank < static_cast<int>(owned.size()); ++rank) {
      const Movement movement = copy_movement(owned, needed, rank);
      add(movement, rank);
      back += volume_of(sum_movement(needed, owned, rank), rank);
    }
  }

  double inside() const { return most(in_near_, out_near_); }
  double across() const { return most(in_far_, out_far_); }
  double node_inside() const { return most(node_near_, node_near_); }
  double node_across() const { return most(node_in_, node_out_); }
  // Some ranks talk by messages, others in rings.
  bool mixed() const { return by_messages && by_rings; }

  Volume there, back;
  int messages = 0;
  bool by_messages = false, by_rings = false;

 private:
  void add(const Movement& movement, int rank) {
    const Volume volume = volume_of(movement, rank);
    there += volume;
    if (movement.group.empty()) {
      by_messages |= movement.talks();
      messages = std::max(messages, static_cast<int>(movement.receives.size()));
      for (const Movement::Part& part : movement.sends)
        send(rank, part.peer, bytes_of(part.box.shape(), movement.type()));
      return;
    }
    by_rings = true;
    messages = std::max(messages, static_cast<int>(movement.group.size()) - 1);
    const auto place = std::ranges::find(movement.group, rank);
    send(rank, place + 1 == movement.group.end() ? movement.group[0] : place[1], volume.sent);
  }
  void send(int rank, int peer, Bytes bytes) {
    const auto from = static_cast<size_t>(rank), to = static_cast<size_t>(peer);
    const auto node = static_cast<size_t>(node_of_[from]), other = static_cast<size_t>(node_of_[to]);
    const bool near = node == other;
    (near ? out_near_ : out_far_)[from] += bytes;
    (near ? in_near_ : in_far_)[to] += bytes;
    (near ? node_near_ : node_out_)[node] += bytes;
    if (!near) node_in_[other] += bytes;
  }
  static double most(const std::vector<Bytes>& some, const std::vector<Bytes>& others) {
    return static_cast<double>(std::max(std::ranges::max(some), std::ranges::max(others)).count);
  }

  const std::vector<int>& node_of_;
  std::vector<Bytes> in_near_, out_near_, in_far_, out_far_, node_near_, node_in_, node_out_;
};

TEST(MovementVolume, IsThatOfThePlannersClosedForm) {
  int messages = 0, rings = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    RandomLayouts layouts(seed);
    const GridLayout owned(layouts.owned()), needed(layouts.needed());
    if (!owned.is_grid() || !needed.is_grid()) continue;
    const std::vector<int> node_of = layouts.node_of();
    const Counted counted(layouts.owned(), layouts.needed(), node_of);
    const ExchangeVolume volume = exchange_volume(owned, needed, node_of);
    ASSERT_EQ(counted.there.sent, volume.total);
    ASSERT_EQ(counted.there.received, volume.total);
    ASSERT_EQ(counted.back.sent, volume.total);
    ASSERT_EQ(counted.back.received, volume.total);
    if (counted.mixed()) continue;  // the closed form counts rings only where all that moves goes in some
    messages += counted.by_messages;
    rings += counted.by_rings;
    constexpr double rounding = 1e-6;  // bytes: the closed form multiplies fractions
    ASSERT_NEAR(counted.inside(), volume.inside, rounding);
    ASSERT_NEAR(counted.across(), volume.across, rounding);
    ASSERT_NEAR(counted.node_inside(), volume.node_inside, rounding);
    ASSERT_NEAR(counted.node_across(), volume.node_across, rounding);
    ASSERT_EQ(counted.messages, volume.messages);
  }
  EXPECT_GT(messages, 500);
  EXPECT_GT(rings, 100);
}

}  // namespace
}  // namespace cortado
