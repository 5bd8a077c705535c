#pragma once

#include <algorithm>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/native/simd.h"

namespace cortado::native {

// target[i] = value(i) for i in [0, count), where value.template operator()<V>(i) gives the lanes from i on.
// Shares of the threads begin at cache lines. Streams past the caches when target is large; `in_place` says
// that value reads target, whose lines are then in the cache anyway.
template <typename E, typename Value>
void map_elements(E* target, int64_t count, bool in_place, Value&& value) {
  constexpr int64_t line = 64 / sizeof(E);
  auto pass = [&]<bool streaming>() {
    // flatten: in a file of many kernels the compiler would call `value` for each vector.
    parallel_ranges((count + line - 1) / line, [&](int64_t begin, int64_t end) __attribute__((flatten)) {
      by_lanes(begin * line, std::min(end * line, count),
               [&]<typename V>(int64_t i) { store<streaming>(target + i, value.template operator()<V>(i)); });
      if constexpr (streaming) finish_streaming();
    });
  };
  if (!in_place && wants_streaming(target, count)) {
    pass.template operator()<true>();
  } else {
    pass.template operator()<false>();
  }
}

}  // namespace cortado::native
