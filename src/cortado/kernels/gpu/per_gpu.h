#pragma once

#include <cuda_runtime_api.h>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace cortado::gpu {

// What kernels share on each GPU, as long as one of them is alive.
template <typename Shared, typename Refusal>
class PerGpu {
 public:
  // That of the calling thread's GPU; `make(number)` makes one. Throws Refusal where there is no GPU.
  template <typename Make>
  std::shared_ptr<Shared> current(Make&& make) {
    int number = 0;
    if (const cudaError_t error = cudaGetDevice(&number); error != cudaSuccess)
      throw Refusal(std::string("no GPU: ") + cudaGetErrorString(error));
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Shared> shared = known_[number].lock();
    if (!shared) known_[number] = shared = make(number);
    return shared;
  }

 private:
  std::mutex mutex_;
  std::map<int, std::weak_ptr<Shared>> known_;
};

}  // namespace cortado::gpu
