#include "cortado/base/denormals.h"

#include <cstdint>
#include <xmmintrin.h>

#include "cortado/base/parallel_for.h"

namespace cortado {
namespace {

// Of the MXCSR register: flush results to zero, take operands that are denormal for zero.
constexpr unsigned flush = 0x8040;

void set(unsigned mode) { _mm_setcsr((_mm_getcsr() & ~flush) | mode); }

}  // namespace

void flush_denormals() { set(flush); }

FlushedDenormals::FlushedDenormals() {
  if ((_mm_getcsr() & flush) == flush) return;
  before_.resize(static_cast<size_t>(compute_threads()));
  on_each_thread([&](int thread) {
    before_[static_cast<size_t>(thread)] = _mm_getcsr() & flush;
    set(flush);
  });
}

FlushedDenormals::~FlushedDenormals() {
  if (before_.empty()) return;
  const ComputeThreads same(static_cast<int>(before_.size()));
  on_each_thread([&](int thread) { set(before_[static_cast<size_t>(thread)]); });
}

}  // namespace cortado
