#pragma once

#include "cortado/base/shape.h"

namespace cortado::reference {

// A tensor, channels last in memory, indexed as it is spoken: row-major over N, C, (D,) H, W.
template <typename T>
class Spoken {
 public:
  Spoken(const Shape& shape, T* memory)
      : memory_(memory), channels_(shape.rank() > 2 ? shape[1] : 1), positions_(shape.spatial_size()) {}

  T& operator[](int64_t index) const {
    if (channels_ == 1 || positions_ == 1) return memory_[index];
    int64_t position = index % positions_;
    int64_t channel = index / positions_ % channels_;
    int64_t sample = index / positions_ / channels_;
    return memory_[(sample * positions_ + position) * channels_ + channel];
  }

 private:
  T* memory_;
  int64_t channels_, positions_;
};

}  // namespace cortado::reference
