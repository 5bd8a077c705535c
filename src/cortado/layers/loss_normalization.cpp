#include "cortado/layers/loss_normalization.h"

#include <algorithm>

namespace cortado {

double loss_normalizer(Normalization normalization, int64_t samples, int64_t positions, int64_t valid) {
  int64_t divisor = 1;
  switch (normalization) {
    case Normalization::full:
      divisor = samples * positions;
      break;
    case Normalization::valid:
      divisor = valid;
      break;
    case Normalization::batch_size:
      divisor = samples;
      break;
    case Normalization::none:
      break;
  }
  return std::max(1.0, static_cast<double>(divisor));
}

}  // namespace cortado
