#pragma once

#include "cortado/base/bf16.h"

namespace cortado {

// Single elements of each type, as floats; those of f64 as doubles. GPUs compute them, too.
constexpr float widened(float value) { return value; }
constexpr float widened(bf16 value) { return to_float(value); }
constexpr double widened(double value) { return value; }
constexpr void assign(float& target, float value) { target = value; }
constexpr void assign(bf16& target, float value) { target = to_bf16(value); }
constexpr void assign(double& target, double value) { target = value; }

}  // namespace cortado
