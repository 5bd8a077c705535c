#pragma once

#include <cstddef>
#include <utility>

#include "cortado/kernels/kernel.h"
#include "cortado/kernels/lowering/lattice.h"

namespace cortado::lowering {

inline constexpr size_t scratch_alignment = 64;
inline size_t aligned(size_t bytes) { return round_up(bytes, scratch_alignment); }

// A weight that the products read in an order of their own while the parameter lies in that order too or,
// when layers share it (Task::canonical_parameters), canonically and is converted at each use. The conversion
// takes the first scratch_bytes() of a kernel's scratch memory.
class LoweredWeight {
 public:
  LoweredWeight(ParameterFormat own, bool canonical) : own_(std::move(own)), canonical_(canonical) {}

  size_t scratch_bytes() const { return canonical_ ? aligned(own_.elements * sizeof(float)) : 0; }
  ParameterFormat format() const { return canonical_ ? ParameterFormat{} : own_; }

  const float* read(const float* parameter, std::byte* scratch) const {
    if (!canonical_) return parameter;
    auto* own = reinterpret_cast<float*>(scratch);
    own_.from_canonical(parameter, own);
    return own;
  }

  // Calls write(own) with where to write the gradient in the products' order; `gradient` may be null.
  template <typename Write>
  void write(float* gradient, std::byte* scratch, Write&& write) const {
    float* own = canonical_ && gradient ? reinterpret_cast<float*>(scratch) : gradient;
    write(own);
    if (own != gradient) own_.to_canonical(own, gradient);
  }

 private:
  ParameterFormat own_;
  bool canonical_;
};

}  // namespace cortado::lowering
