#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "cortado/base/error.h"

namespace cortado {

// Sums over fixed blocks in a fixed binary tree: whoever adds which of its nodes, the sum has the same bits.
// A member holds the sum of a node: of as many successive blocks as its size says, a power of two.

// The sizes of the nodes of `members` that share such a tree evenly, the smallest of them 1: (2, 1, 1) of
// three. Their sum is a power of two.
inline std::vector<int64_t> tree_shares(int members) {
  int64_t blocks = 1;
  while (blocks < members) blocks *= 2;
  std::vector<int64_t> sizes{blocks};
  while (static_cast<int>(sizes.size()) < members) {
    size_t largest = 0;  // the last one of them
    for (size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] >= sizes[largest]) largest = i;
    sizes[largest] /= 2;
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(largest), sizes[largest]);
  }
  return sizes;
}

// Calls add(i, j), which adds what member j holds to what member i holds, until member `first` holds the sum
// of all. Member `first + k` has the size sizes[k].
template <typename Add>
void sum_in_tree(std::span<const int64_t> sizes, Add&& add, size_t first = 0) {
  if (sizes.size() < 2) return;
  const int64_t all = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  size_t half = 0;
  int64_t sum = 0;
  while (2 * sum < all) sum += sizes[half++];
  ensure(2 * sum == all, "what is summed in a tree are its nodes");
  sum_in_tree(sizes.first(half), add, first);
  sum_in_tree(sizes.subspan(half), add, first + half);
  add(first, first + half);
}

}  // namespace cortado
