#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado::device::cuda {

// Throws InternalError where a call failed. `what`: "a copy begins".
inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw InternalError(fmt::format("{} on the GPU: {}", what, cudaGetErrorString(error)));
}
inline void check(CUresult error, const char* what) {
  if (error == CUDA_SUCCESS) return;
  throw InternalError(fmt::format("{} on the GPU: error {} of its driver", what, static_cast<int>(error)));
}

}  // namespace cortado::device::cuda
