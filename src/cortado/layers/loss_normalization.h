#pragma once

#include <cstdint>

namespace cortado {

// What a loss is divided by; Caffe's LossParameter.NormalizationMode.
enum class Normalization {
  full,        // samples x positions, ignored ones included
  valid,       // positions that are not ignored
  batch_size,  // samples
  none,        // 1
};

// The divisor, at least 1 so that a batch of ignored labels gives zero and not NaN. `samples` and `positions`
// are the products of the extents before and after the class axis, `valid` the number of labels not ignored.
double loss_normalizer(Normalization normalization, int64_t samples, int64_t positions, int64_t valid);

}  // namespace cortado
