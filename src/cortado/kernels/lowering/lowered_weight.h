#pragma once

#include <cstddef>

#include "cortado/kernels/lowering/panels.h"

namespace cortado::lowering {

inline constexpr size_t scratch_alignment = 64;
inline size_t aligned(size_t bytes) { return round_up(bytes, scratch_alignment); }

// A weight that the products read in panels while the parameter is either in panels too or, when layers share
// it (Task::canonical_parameters), canonical and converted at each use. The conversion takes the first
// scratch_bytes() of a kernel's scratch memory.
class LoweredWeight {
 public:
  LoweredWeight(WeightPanels panels, bool canonical) : panels_(panels), canonical_(canonical) {}

  size_t scratch_bytes() const { return canonical_ ? aligned(panels_.elements() * sizeof(float)) : 0; }
  ParameterFormat format() const { return canonical_ ? ParameterFormat{} : panels_.format(); }

  const float* read(const float* parameter, std::byte* scratch) const {
    if (!canonical_) return parameter;
    auto* own = reinterpret_cast<float*>(scratch);
    panels_.from_canonical(parameter, own);
    return own;
  }

  // Calls write(panels) with where to write the gradient in panels; `gradient` may be null.
  template <typename Write>
  void write(float* gradient, std::byte* scratch, Write&& write) const {
    float* own = canonical_ && gradient ? reinterpret_cast<float*>(scratch) : gradient;
    write(own);
    if (own != gradient) panels_.to_canonical(own, gradient);
  }

 private:
  WeightPanels panels_;
  bool canonical_;
};

}  // namespace cortado::lowering
