#pragma once

#include "cortado/base/bf16.h"

namespace cortado {

// Single elements of either type, as floats.
inline float widened(float value) { return value; }
inline float widened(bf16 value) { return to_float(value); }
inline void assign(float& target, float value) { target = value; }
inline void assign(bf16& target, float value) { target = to_bf16(value); }

}  // namespace cortado
