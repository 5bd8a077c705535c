#include "cortado/kernels/onednn/overflow.h"

#include <atomic>
#include <xmmintrin.h>

#include "cortado/base/parallel_for.h"

namespace cortado::onednn {

bool take_overflow() {
  constexpr unsigned notes = _MM_EXCEPT_OVERFLOW | _MM_EXCEPT_DIV_ZERO;
  std::atomic<bool> found = false;
  on_each_thread([&](int) {
    const unsigned state = _mm_getcsr();
    if ((state & notes) == 0) return;
    found.store(true, std::memory_order_relaxed);
    _mm_setcsr(state & ~notes);
  });
  return found;
}

bool all_finite(const float* values, int64_t count) {
  std::atomic<bool> finite = true;
  parallel_ranges(count, [&](int64_t begin, int64_t end) {
    float sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += 0 * values[i];
    if (sum != 0) finite.store(false, std::memory_order_relaxed);  // not a number
  });
  return finite;
}

}  // namespace cortado::onednn
