#pragma once

#include "cortado/base/bf16.h"

namespace cortado {

// Single elements of each type, as floats; those of f64 as doubles.
inline float widened(float value) { return value; }
inline float widened(bf16 value) { return to_float(value); }
inline double widened(double value) { return value; }
inline void assign(float& target, float value) { target = value; }
inline void assign(bf16& target, float value) { target = to_bf16(value); }
inline void assign(double& target, double value) { target = value; }

}  // namespace cortado
