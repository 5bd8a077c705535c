#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cortado/base/units.h"
#include "cortado/device/runtime.h"

// The CUDA that this build has (device/cuda) or has not (device/no_cuda).
namespace cortado::device {

// What the driver says about a GPU of this host.
struct Gpu {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  Bytes memory;
  int major = 0, minor = 0;  // compute capability
};

std::string text(const Gpu& gpu);  // "NVIDIA H100 80GB HBM3, compute capability 9.0, 79.1 GiB"

std::vector<Gpu> gpus();
// Why there are no GPUs, as a sentence; empty: there are.
std::string no_gpus_because();
// The GPU of that number (gpus()). Throws UserError where it cannot be opened.
std::unique_ptr<DeviceRuntime> make_cuda(int number, const DeviceOptions& options = {});

}  // namespace cortado::device
