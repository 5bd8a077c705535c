// A stub: declarations for a syntax check, not NVIDIA's header (README.md).
#pragma once

#include <cstddef>

enum CUresult { CUDA_SUCCESS = 0 };
using CUdeviceptr = unsigned long long;
using CUstream = struct CUstream_st*;

extern "C" {
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream);
}
