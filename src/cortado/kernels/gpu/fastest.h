#pragma once

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/base/units.h"

// Measurements among the ways in which a library of a GPU may compute one thing.
namespace cortado::gpu {

// Memory of the calling thread's GPU for the length of a measurement. Null where there is not that much.
class Trial {
 public:
  explicit Trial(Bytes size) {
    if (cudaMalloc(&memory_, static_cast<size_t>(size.count)) != cudaSuccess)
      memory_ = nullptr;
    else
      cudaMemset(memory_, 0, static_cast<size_t>(size.count));
    cudaGetLastError();  // a lack of memory is no error of later calls
  }
  ~Trial() { cudaFree(memory_); }
  Trial(Trial&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
  Trial& operator=(Trial&&) = delete;
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  void* get() const { return memory_; }

 private:
  void* memory_ = nullptr;
};

// Milliseconds of one run(stream), the least of a few after one that warms up; infinite where CUDA refuses.
// Looks no longer at what is far from `known`, the least so far of other runs. Throws InternalError with
// name() where a run fails on the GPU: nothing can run there any more.
template <typename Run, typename Name>
float milliseconds(cudaStream_t stream, float known, Run&& run, Name&& name) {
  constexpr int looks = 4;
  constexpr float far_cold = 4, far = 1.25F;  // the first run may load its kernel
  float least = std::numeric_limits<float>::infinity();
  cudaEvent_t begin = nullptr, end = nullptr;
  if (cudaEventCreate(&begin) != cudaSuccess || cudaEventCreate(&end) != cudaSuccess) return least;
  for (int look = 0; look < looks; ++look) {
    cudaEventRecord(begin, stream);
    run(stream);
    cudaEventRecord(end, stream);
    float taken = 0;
    if (const cudaError_t error = cudaEventSynchronize(end); error != cudaSuccess)
      throw InternalError(fmt::format("{}: {}", name(), cudaGetErrorString(error)));
    if (cudaEventElapsedTime(&taken, begin, end) != cudaSuccess) break;
    if (look > 0) least = std::min(least, taken);
    if (taken > known * (look == 0 ? far_cold : far)) break;
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return least;
}

// The number of the fastest of `ways`, run by run(way, stream) and named by name(way); the first where
// nothing can be measured.
template <typename Way, typename Run, typename Name>
size_t fastest(const std::vector<Way>& ways, Run&& run, Name&& name) {
  cudaStream_t stream = nullptr;
  if (ways.size() < 2 || cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return 0;
  size_t best = 0;
  float least = std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < ways.size(); ++i) {
    const float taken = milliseconds(
        stream, least, [&](cudaStream_t on) { run(ways[i], on); }, [&] { return name(ways[i]); });
    if (taken < least) least = taken, best = i;
  }
  cudaStreamDestroy(stream);
  return best;
}

}  // namespace cortado::gpu
