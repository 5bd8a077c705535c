#pragma once

#include <cstddef>
#include <cstdint>

namespace cortado::lowering {

// What is fetched into the caches while sums are made, `step` bytes for each of their terms.
struct Ahead {
  const std::byte* from;
  int64_t step;

  void fetch() {
    __builtin_prefetch(from);
    from += step;
  }
};
struct NothingAhead {
  void fetch() {}
};

// Both operands' rows of the block that is packed next: two runs of memory.
struct NextBlock {
  const void *left, *right;
  int64_t left_bytes, right_bytes;

  // What to fetch from now on, where `done` of `all` terms of this block are summed.
  Ahead ahead(int64_t done, int64_t all) const {
    const int64_t bytes = left_bytes + right_bytes, at = bytes * done / all;
    const void* const run = at < left_bytes ? left : right;
    const int64_t offset = at < left_bytes ? at : at - left_bytes;
    return {static_cast<const std::byte*>(run) + offset, (bytes + all - 1) / all};
  }
};

}  // namespace cortado::lowering
