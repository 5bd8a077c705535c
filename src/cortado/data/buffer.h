#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

#include "cortado/base/element_type.h"

namespace cortado {

// Floats on a 64-byte boundary (a cache line, an AVX-512 register), initially zero.
class AlignedBuffer {
 public:
  explicit AlignedBuffer(int64_t floats)
      : values_(static_cast<float*>(
            std::aligned_alloc(64, (bytes_of(floats, ElementType::f32).count + 64) / 64 * 64))),
        size_(floats) {
    if (!values_) throw std::bad_alloc();
    std::fill_n(values_.get(), floats, 0.0f);
  }
  float* data() const { return values_.get(); }
  std::span<float> span() const { return {values_.get(), static_cast<size_t>(size_)}; }

 private:
  struct Free {
    void operator()(float* values) const { std::free(values); }
  };
  std::unique_ptr<float, Free> values_;
  int64_t size_;
};

}  // namespace cortado
