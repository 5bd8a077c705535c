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
  const char* text = nullptr;
  cuGetErrorString(error, &text);
  throw InternalError(fmt::format("{} on the GPU: {}", what, text ? text : "unknown error"));
}

}  // namespace cortado::device::cuda
