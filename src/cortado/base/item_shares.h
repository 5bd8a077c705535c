#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "cortado/base/parallel_for.h"

namespace cortado {

// Items [0, count) for several takers. Each takes the items of its own share, in order, and then what others
// have left, from the end: who has no core for a while leaves its items to the rest. Takers may be threads.
class ItemShares {
 public:
  // Fewer than 2^32 items.
  ItemShares(int64_t count, int64_t takers) : shares_(static_cast<size_t>(takers)) {
    for (int64_t taker = 0; taker < takers; ++taker)
      share(taker).left = pack(count * taker / takers, count * (taker + 1) / takers);
  }

  // An item that nobody has taken; -1: none is left.
  int64_t take(int64_t taker) {
    const auto takers = static_cast<int64_t>(shares_.size());
    int64_t item = take_from(share(taker), true);
    for (int64_t next = 1; next < takers && item < 0; ++next)
      item = take_from(share((taker + next) % takers), false);
    return item;
  }

 private:
  struct alignas(64) Share {
    std::atomic<uint64_t> left;  // its first item, and the one after its last
  };

  static uint64_t pack(int64_t begin, int64_t end) {
    return static_cast<uint64_t>(begin) << 32 | static_cast<uint64_t>(end);
  }

  static int64_t take_from(Share& share, bool first) {
    uint64_t left = share.left.load(std::memory_order_relaxed);
    while (true) {
      const auto begin = static_cast<int64_t>(left >> 32), end = static_cast<int64_t>(left & 0xFFFFFFFF);
      if (begin == end) return -1;
      const uint64_t rest = first ? pack(begin + 1, end) : pack(begin, end - 1);
      if (share.left.compare_exchange_weak(left, rest, std::memory_order_relaxed))
        return first ? begin : end - 1;
    }
  }

  Share& share(int64_t taker) { return shares_[static_cast<size_t>(taker)]; }

  std::vector<Share> shares_;
};

// Calls work(thread, item) for each of `count` items on the compute threads, in such shares.
template <typename Work>
void share_items(int64_t count, Work&& work) {
  const int64_t threads = compute_threads();
  ItemShares shares(count, threads);
  parallel_for(threads, [&](int64_t thread) {
    for (int64_t item = shares.take(thread); item >= 0; item = shares.take(thread)) work(thread, item);
  });
}

}  // namespace cortado
