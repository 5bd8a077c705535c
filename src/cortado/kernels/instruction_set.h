#pragma once

#include <string_view>

namespace cortado {

// The instruction set for whose vectors this build's kernels are compiled: "avx512f", "avx2" or "baseline".
// Builds for one instruction set have the same kernels, so what they need of memory and order is the same on
// all machines.
std::string_view kernel_instruction_set();

}  // namespace cortado
