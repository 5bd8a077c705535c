#include "cortado/base/item_shares.h"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace cortado {
namespace {

TEST(ItemShares, TakersTakeEachItemOnce) {
  constexpr int takers = 4, count = 20000;
  ItemShares items(count, takers);
  std::vector<std::atomic<int>> taken(count);
  {
    std::vector<std::jthread> threads;
    for (int taker = 0; taker < takers; ++taker)
      threads.emplace_back([&, taker] {
        for (int64_t item = items.take(taker); item >= 0; item = items.take(taker))
          ++taken[static_cast<size_t>(item)];
      });
  }
  EXPECT_TRUE(std::ranges::all_of(taken, [](const auto& times) { return times == 1; }));
}

TEST(ItemShares, OwnItemsComeFirstAndInOrder) {
  ItemShares items(7, 2);
  std::vector<int64_t> order;
  for (int64_t item = items.take(1); item >= 0; item = items.take(1)) order.push_back(item);
  EXPECT_EQ(order, (std::vector<int64_t>{3, 4, 5, 6, 2, 1, 0}));
  EXPECT_EQ(items.take(0), -1);
}

TEST(ItemShares, FewerItemsThanTakers) {
  ItemShares items(1, 3);
  EXPECT_EQ(items.take(0), 0);
  EXPECT_EQ(items.take(1), -1);
  EXPECT_EQ(ItemShares(0, 2).take(1), -1);
}

}  // namespace
}  // namespace cortado
