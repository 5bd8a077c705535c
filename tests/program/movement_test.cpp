// What a rank sends and receives when a tensor moves from one layout to another.
#include "cortado/program/movement.h"

#include <random>

#include "tests/program/programs.h"

namespace cortado {
namespace {

// The patterns of the movements of a layout to another, per rank.
std::vector<Movement::Pattern> patterns(const Layout& owned, const Layout& needed) {
  std::vector<Movement::Pattern> patterns;
  for (size_t rank = 0; rank < owned.size(); ++rank)
    patterns.push_back(copy_movement(owned, needed, static_cast<int>(rank)).pattern());
  return patterns;
}

Box channels(int64_t begin, int64_t end) {
  Box box = Box::whole(Shape{8, end, 16});
  box[1].begin = begin;
  return box;
}

TEST(Movement, GroupsThatShareTheirPartsAreCollectives) {
  using enum Movement::Pattern;
  const Layout uneven{channels(0, 3), channels(3, 8), channels(8, 12)};
  const std::optional<Box> whole = channels(0, 12), low = channels(0, 8);
  EXPECT_EQ(patterns(uneven, {whole, whole, whole}), (std::vector{allgather, allgather, allgather}));
  // Two groups that keep to themselves, of which one is a single rank.
  EXPECT_EQ(patterns(uneven, {low, low, channels(8, 12)}), (std::vector{allgather, allgather, messages}));
  // A member that has nothing of it.
  EXPECT_EQ(patterns({low, channels(8, 12), std::nullopt}, {whole, whole, whole}),
            (std::vector{allgather, allgather, allgather}));
  EXPECT_EQ(patterns({std::nullopt, whole, std::nullopt}, {whole, whole, whole}),
            (std::vector{broadcast, broadcast, broadcast}));
  // Rank 2 wants a part from the group, and here the group wants one from rank 2.
  EXPECT_EQ(patterns(uneven, {low, low, whole}), (std::vector{messages, messages, messages}));
  EXPECT_EQ(patterns(uneven, {whole, whole, std::nullopt}), (std::vector{messages, messages, messages}));
  // Halos, and what is there already.
  EXPECT_EQ(patterns({channels(0, 6), channels(6, 12)}, {channels(0, 7), channels(5, 12)}),
            (std::vector{messages, messages}));
  EXPECT_EQ(patterns({whole, whole}, {whole, whole}), (std::vector{messages, messages}));

  const Movement gather = copy_movement(uneven, {whole, whole, whole}, 1);
  EXPECT_EQ(adjoint(gather).pattern(), reduce_scatter);
  EXPECT_EQ(sum_movement({whole, whole, whole}, uneven, 1).pattern(), reduce_scatter);
  EXPECT_FALSE(gather.chunks_in_order());  // channels are last in memory
  Box first = Box::whole(Shape{4, 12, 16}), second = Box::whole(Shape{8, 12, 16});
  second[0].begin = 4;
  const std::optional<Box> both = channels(0, 12);
  EXPECT_TRUE(copy_movement({first, second}, {both, both}, 0).chunks_in_order());
  EXPECT_FALSE(copy_movement({second, first}, {both, both}, 0).chunks_in_order());
}

// Where an element of a box lies in memory: channels last.
int64_t offset_of(const std::vector<int64_t>& index, const Box& held) {
  int64_t offset = 0;
  for (int i = 0; i < held.rank(); ++i) {
    const int axis = i == 0 ? 0 : i == held.rank() - 1 ? 1 : i + 1;
    offset = offset * held[axis].size() + index[static_cast<size_t>(axis)] - held[axis].begin;
  }
  return offset;
}

// Calls `visit` with each index of a box of rank 3.
template <typename Visit>
void for_elements(const Box& box, Visit&& visit) {
  for (int64_t i = box[0].begin; i < box[0].end; ++i)
    for (int64_t j = box[1].begin; j < box[1].end; ++j)
      for (int64_t k = box[2].begin; k < box[2].end; ++k) visit(std::vector{i, j, k});
}

// Calls `visit` with each box that is not empty within [0,3)x[0,3)x[0,3).
template <typename Visit>
void for_boxes(Visit&& visit) {
  const std::vector<Range> ranges{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  Box box = Box::whole(Shape{3, 3, 3});
  for (const Range& first : ranges)
    for (const Range& second : ranges)
      for (const Range& third : ranges) {
        box[0] = first, box[1] = second, box[2] = third;
        visit(box);
      }
}

// Tries all boxes within all boxes of up to 3x3x3 elements.
TEST(Movement, APartIsContiguousWhereItsElementsAreOneRunOfMemory) {
  for_boxes([](const Box& held) {
    for_boxes([&](const Box& part) {
      if (!held.contains(part)) return;
      int64_t first = held.shape().size(), last = -1;
      for_elements(part, [&](const std::vector<int64_t>& index) {
        first = std::min(first, offset_of(index, held));
        last = std::max(last, offset_of(index, held));
      });
      ASSERT_EQ(contiguous(part, held), last - first + 1 == part.shape().size())
          << part.text() << " of " << held.text();
    });
  });
}

// A tensor of 4x6x5, cut into parts along one axis, and boxes that ranks need.
class RandomLayouts {
 public:
  explicit RandomLayouts(uint32_t seed) : random_(seed) {
    const int ranks = pick(1, 4), axis = pick(0, 2);
    int64_t begin = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      Box box = Box::whole(shape_);
      const int64_t rest = shape_[axis] - begin;
      box[axis] = {begin, rank == ranks - 1 ? shape_[axis] : begin + pick(0, static_cast<int>(rest))};
      begin = box[axis].end;
      owned.push_back(box.empty() ? std::nullopt : std::optional(box));
      needed.push_back(pick(0, 4) == 0 ? std::nullopt : std::optional(any_box()));
    }
    // Often all need the same.
    if (pick(0, 1) == 0)
      for (auto& box : needed) box = needed[0];
  }

  Layout owned, needed;

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  Box any_box() {
    Box box = Box::whole(shape_);
    for (int axis = 0; axis < 3; ++axis) {
      box[axis].begin = pick(0, static_cast<int>(shape_[axis]) - 1);
      box[axis].end = pick(static_cast<int>(box[axis].begin) + 1, static_cast<int>(shape_[axis]));
    }
    return box;
  }

  std::mt19937 random_;
  const Shape shape_{4, 6, 5};
};

bool holds(const std::optional<Box>& box, const std::vector<int64_t>& index) {
  if (!box) return false;
  for (int axis = 0; axis < box->rank(); ++axis)
    if (index[static_cast<size_t>(axis)] < (*box)[axis].begin ||
        index[static_cast<size_t>(axis)] >= (*box)[axis].end)
      return false;
  return true;
}

// Element by element: what a rank needs comes once, from the rank that has it.
void expect_arrives_once(const Layout& owned, const Movement& movement) {
  if (!movement.to) return;
  for_elements(*movement.to, [&](const std::vector<int64_t>& index) {
    int times = holds(movement.local, index) ? 1 : 0;
    for (const auto& part : movement.receives) {
      if (!holds(part.box, index)) continue;
      ++times;
      EXPECT_TRUE(holds(owned[static_cast<size_t>(part.peer)], index));
    }
    EXPECT_EQ(times, 1);
  });
}

// Each send of a rank is its peer's receive.
void expect_received(const std::vector<Movement>& movements, size_t rank) {
  for (const auto& sent : movements[rank].sends) {
    const auto& receives = movements[static_cast<size_t>(sent.peer)].receives;
    EXPECT_EQ(std::ranges::count_if(receives,
                                    [&](const Movement::Part& part) {
                                      return part.peer == static_cast<int>(rank) && part.box == sent.box;
                                    }),
              1);
  }
}

int64_t naive_packed(const Movement& movement) {
  int64_t elements = 0;
  for (const auto& part : movement.sends)
    elements += contiguous(part.box, *movement.from) ? 0 : part.box.shape().size();
  for (const auto& part : movement.receives)
    elements += !movement.sums && contiguous(part.box, *movement.to) ? 0 : part.box.shape().size();
  return elements;
}

TEST(Movement, BringsEachRankWhatItNeedsOnce) {
  int groups = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const RandomLayouts layouts(seed);
    std::vector<Movement> movements;
    for (size_t rank = 0; rank < layouts.owned.size(); ++rank)
      movements.push_back(copy_movement(layouts.owned, layouts.needed, static_cast<int>(rank)));
    for (size_t rank = 0; rank < movements.size(); ++rank) {
      const Movement& movement = movements[rank];
      expect_arrives_once(layouts.owned, movement);
      expect_received(movements, rank);
      EXPECT_EQ(movement.talks(), !movement.sends.empty() || !movement.receives.empty());
      if (movement.group.empty()) {
        EXPECT_EQ(movement.packed(), naive_packed(movement));
        EXPECT_EQ(adjoint(movement).packed(), naive_packed(adjoint(movement)));
        continue;
      }
      ++groups;
      EXPECT_EQ(movement.packed(), movement.chunks_in_order() ? 0 : movement.to->shape().size());
      EXPECT_EQ(adjoint(movement).packed(), movement.to->shape().size());  // partial sums lie apart
    }
  }
  EXPECT_GT(groups, 50);
}

// Each rank finds its own part without looking at what moves between others.
TEST(Movement, IsARanksPartOfAllTransfers) {
  int rings = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const RandomLayouts layouts(seed);
    const std::vector<Transfer> moves = transfers(layouts.owned, layouts.needed);
    for (int rank = 0; rank < static_cast<int>(layouts.owned.size()); ++rank) {
      const Movement movement = copy_movement(layouts.owned, layouts.needed, rank);
      std::vector<Transfer> own;
      for (const auto& part : movement.receives) own.push_back({part.peer, rank, part.box});
      for (const auto& part : movement.sends) own.push_back({rank, part.peer, part.box});
      if (movement.local) own.push_back({rank, rank, *movement.local});
      const auto is_own = [&](const Transfer& move) { return move.from == rank || move.to == rank; };
      EXPECT_EQ(std::ssize(own), std::ranges::count_if(moves, is_own));
      for (const Transfer& move : own) EXPECT_EQ(std::ranges::count(moves, move), 1);
      const auto ring = ring_group(moves, layouts.needed, rank);
      EXPECT_EQ(movement.group, ring ? ring->members : std::vector<int>());
      EXPECT_EQ(movement.chunks, ring ? ring->chunks : Layout());
      rings += ring.has_value();
    }
  }
  EXPECT_GT(rings, 50);
}

TEST(Movement, TheAdjointGoesBackAndSums) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const RandomLayouts layouts(seed);
    const Movement there = copy_movement(layouts.owned, layouts.needed, 0), back = adjoint(there);
    EXPECT_EQ(back.from, there.to);
    EXPECT_EQ(back.to, there.from);
    EXPECT_EQ(back.local, there.local);
    EXPECT_EQ(back.sends.size(), there.receives.size());
    EXPECT_EQ(back.group, there.group);
    EXPECT_TRUE(back.sums);
    EXPECT_FALSE(adjoint(back).sums);
    EXPECT_EQ(sum_movement(layouts.needed, layouts.owned, 0).pattern(), back.pattern());
  }
}

}  // namespace
}  // namespace cortado
