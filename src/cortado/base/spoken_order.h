#pragma once

#include "cortado/base/shape.h"

namespace cortado {

// A tensor of that shape from memory order (channels last) to spoken order (row-major in N, C, (D,) H, W),
// and back. Source and target must not overlap.
void to_spoken(const Shape& shape, const float* memory, float* spoken);
void from_spoken(const Shape& shape, const float* spoken, float* memory);

}  // namespace cortado
