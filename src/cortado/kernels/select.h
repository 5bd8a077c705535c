#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cortado/kernels/kernel.h"

namespace cortado {

// A word in place of an implementation's name: the list of all, and those, too, whose rounding errors are
// larger than those of sums in float32. These run only so, or where they are named.
inline constexpr const char* fast_math = "fast-math";
// A word in the same place: kernels of fixed blocks (kernels/blocked.h), whose results depend neither on the
// device's share of the layer nor on the number of threads.
inline constexpr const char* reproducible_kernels = "reproducible";

// The name of our own kernels for GPUs (gpu/), which the processor computes as well.
inline constexpr const char* gpu_kernels = "gpu";
// Words in the same place, on a GPU: those of libraries (gpu_libraries.h), then our own; with the second
// those that round to TF32, too.
inline constexpr const char* gpu_list = "gpu-list";
inline constexpr const char* gpu_fast_math = "gpu-fast-math";

// Throws UserError unless an implementation has that name, or it is `also`, which is listed with them.
void require_kernels_named(const std::string& name, std::string_view also = "");

// Those that may take tasks like this one, by the type of its first layer: fastest first, without the
// reference and without those that are there to be compared with. `kernels` (optional): fast_math.
std::vector<Implementation> implementations_of(const Task& task, const std::string& kernels = "");

// What select_kernel found: the kernel and, for --verbose, why each faster implementation refused.
struct Selection {
  std::unique_ptr<Kernel> kernel;
  std::string implementation;
  std::vector<std::string> refusals;  // "onednn: dilation on a 1-D tensor"
  bool for_gpu = false;               // it runs on a GPU's stream
};

// All implementations, fastest first, `reference` last. `kernels` (optional): layers that this implementation
// knows get no other (a chain that it refuses gets the reference); or fast_math or reproducible_kernels,
// which give some chains no kernel. Throws UserError when none accepts, or none is named so.
Selection select_kernel(const Task& task, const std::string& kernels = "");

}  // namespace cortado
