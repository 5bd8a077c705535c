#include "cortado/parallel/layout.h"

#include <gtest/gtest.h>
#include <random>

#include "cortado/base/error.h"
#include "cortado/parallel/config.h"

namespace cortado {
namespace {

Layout cut(const Shape& shape, const Degrees& degrees, int ranks) {
  Layout layout(static_cast<size_t>(ranks));
  ParallelConfig config{.degrees = degrees, .devices = {}, .weights = {}};
  for (int i = 0; i < degrees.product(); ++i) layout[i] = domain_block(shape, config, i);
  return layout;
}

TEST(Transfers, EqualLayoutsMoveNothing) {
  const Layout layout = cut({4, 3, 8, 8}, {.n = 2, .h = 2}, 4);
  EXPECT_TRUE(in_place(layout, layout));
  for (const Transfer& transfer : transfers(layout, layout)) EXPECT_EQ(transfer.from, transfer.to);
}

TEST(Transfers, AHaloIsExactlyTheRowsThatAreMissing) {
  const Layout owned = cut({1, 1, 8, 4}, {.h = 2}, 2);
  Layout needed = owned;
  (*needed[0])[2] = {0, 5};
  (*needed[1])[2] = {3, 8};
  int64_t moved = 0;
  for (const Transfer& transfer : transfers(owned, needed)) {
    if (transfer.from != transfer.to) moved += transfer.box.shape().size();
  }
  EXPECT_EQ(moved, 2 * 4);  // one row each way
}

// Every element that is needed arrives exactly once, from a rank that has it.
TEST(Transfers, BringEveryElementOnce) {
  std::mt19937 random(3);
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < 300; ++round) {
    const Shape shape{pick(1, 5), pick(1, 5), pick(1, 6), pick(1, 6)};
    const int ranks = 8;
    auto degree = [&](int64_t extent) { return pick(1, static_cast<int>(std::min<int64_t>(extent, 2))); };
    auto any = [&] { return Degrees{.n = degree(shape[0]), .c = degree(shape[1]), .h = degree(shape[2])}; };
    const Layout owned = cut(shape, any(), ranks), needed = cut(shape, any(), ranks);
    std::vector<std::vector<int>> got(ranks, std::vector<int>(static_cast<size_t>(shape.size())));
    for (const Transfer& transfer : transfers(owned, needed)) {
      ASSERT_TRUE(owned[transfer.from]->contains(transfer.box));
      ASSERT_TRUE(needed[transfer.to]->contains(transfer.box));
      const Box& box = transfer.box;
      for (int64_t n = box[0].begin; n < box[0].end; ++n)
        for (int64_t c = box[1].begin; c < box[1].end; ++c)
          for (int64_t h = box[2].begin; h < box[2].end; ++h)
            for (int64_t w = box[3].begin; w < box[3].end; ++w)
              ++got[transfer.to][((n * shape[1] + c) * shape[2] + h) * shape[3] + w];
    }
    for (int rank = 0; rank < ranks; ++rank) {
      int64_t once = 0;
      for (int count : got[rank]) {
        ASSERT_LE(count, 1);
        once += count;
      }
      ASSERT_EQ(once, needed[rank] ? needed[rank]->shape().size() : 0);
    }
  }
}

TEST(Transfers, WhoHasAllItNeedsAsksNobody) {
  // Readers hold whole samples, whose ranges overlap.
  Layout owned(2), needed(2);
  owned[0] = owned[1] = Box::whole({4, 2});
  needed[0] = needed[1] = Box::whole({4, 2});
  (*needed[1])[0] = {1, 3};
  EXPECT_EQ(transfers(owned, needed), (std::vector<Transfer>{{0, 0, *needed[0]}, {1, 1, *needed[1]}}));
}

TEST(Transfers, AMissingPartIsAnError) {
  Layout owned(2), needed(2);
  owned[0] = Box::whole({4, 2});
  (*owned[0])[0] = {0, 3};
  needed[1] = Box::whole({4, 2});
  EXPECT_THROW(transfers(owned, needed), InternalError);
}

}  // namespace
}  // namespace cortado
