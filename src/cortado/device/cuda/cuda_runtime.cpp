// GPUs by CUDA's runtime. NVIDIA, "CUDA Runtime API", sections on devices, memory, streams and events.
#include "cortado/device/cuda.h"
#include "cortado/device/cuda/cuda_queue.h"

namespace cortado::device {
namespace cuda {
namespace {

class CudaRuntime : public DeviceRuntime {
 public:
  CudaRuntime(int gpu, const DeviceOptions& options)
      : DeviceRuntime(false, Launches::gpu_work), gpu_(gpu), options_(options), queue_(gpu) {}
  bool captures() const override { return options_.graphs; }
  Link link() const override { return Link::nccl; }
  std::string unit() const override {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, gpu_), "its number is asked for");
    return {properties.uuid.bytes, sizeof properties.uuid.bytes};
  }
  Queue& queue() override { return queue_; }
  std::unique_ptr<Queue> make_queue() override { return std::make_unique<CudaQueue>(gpu_); }
  std::unique_ptr<Event> make_event(bool timed) override { return std::make_unique<CudaEvent>(gpu_, timed); }

  std::shared_ptr<void> pin(std::byte* host, Bytes size) override {
    if (size.count == 0) return nullptr;
    check(cudaSetDevice(gpu_), "a thread begins");
    check(cudaHostRegister(host, static_cast<size_t>(size.count), cudaHostRegisterDefault),
          "the host's memory is pinned");
    return {host, [](void* pinned) { cudaHostUnregister(pinned); }};
  }

 private:
  std::byte* allocate(Bytes size) override {
    check(cudaSetDevice(gpu_), "a thread begins");
    void* block = nullptr;
    const cudaError_t error = cudaMalloc(&block, static_cast<size_t>(size.count));
    if (error == cudaErrorMemoryAllocation)
      throw UserError(fmt::format("gpu:{} does not have {:.2f} GiB of memory to give; use a smaller batch",
                                  gpu_, static_cast<double>(size.count) / 0x1p30));
    check(error, "memory is taken");
    check(cudaMemset(block, 0, static_cast<size_t>(size.count)), "memory is zeroed");
    check(cudaDeviceSynchronize(), "memory is zeroed");
    return static_cast<std::byte*>(block);
  }
  void free(std::byte* block, Bytes) override {
    cudaSetDevice(gpu_);
    cudaFree(block);
  }

  const int gpu_;
  const DeviceOptions options_;
  CudaQueue queue_;
};

int count_of(cudaError_t& error) {
  int count = 0;
  error = cudaGetDeviceCount(&count);
  return error == cudaSuccess ? count : 0;
}

}  // namespace
}  // namespace cuda

std::vector<Gpu> gpus() {
  cudaError_t error = cudaSuccess;
  std::vector<Gpu> found(static_cast<size_t>(cuda::count_of(error)));
  for (size_t i = 0; i < found.size(); ++i) {
    cudaDeviceProp properties{};
    cuda::check(cudaGetDeviceProperties(&properties, static_cast<int>(i)), "its name is asked for");
    found[i] = {properties.name,
                {static_cast<int64_t>(properties.totalGlobalMem)},
                properties.major,
                properties.minor};
  }
  return found;
}

std::string no_gpus_because() {
  cudaError_t error = cudaSuccess;
  if (cuda::count_of(error) > 0) return "";
  return fmt::format("this host has no GPU that CUDA can use: {}",
                     error == cudaSuccess ? "it counts none" : cudaGetErrorString(error));
}

std::unique_ptr<DeviceRuntime> make_cuda(int number, const DeviceOptions& options) {
  return std::make_unique<cuda::CudaRuntime>(number, options);
}

}  // namespace cortado::device
