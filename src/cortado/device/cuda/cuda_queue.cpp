#include "cortado/device/cuda/cuda_queue.h"

#include <bit>
#include <dlfcn.h>

namespace cortado::device::cuda {
namespace {

// The GPU of a call is the calling thread's: both lanes call.
void use(int gpu) { check(cudaSetDevice(gpu), "a thread begins"); }

// A function of the driver, which CUDA's runtime has loaded. To link the driver would keep a build with CUDA
// from starting where there is none.
template <typename Function>
Function of_driver(const char* name) {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY);
  void* const found = driver ? dlsym(driver, name) : nullptr;
  if (!found) throw InternalError(fmt::format("the driver of the GPU has no {}", name));
  return reinterpret_cast<Function>(found);
}

struct CudaGraph : Graph {
  cudaGraphExec_t executable = nullptr;
  ~CudaGraph() override {
    if (executable) cudaGraphExecDestroy(executable);
  }
};

}  // namespace

CudaEvent::CudaEvent(int gpu, bool timed) : gpu_(gpu) {
  use(gpu_);
  check(cudaEventCreateWithFlags(&event_, timed ? cudaEventDefault : cudaEventDisableTiming),
        "an event is made");
}
CudaEvent::~CudaEvent() { cudaEventDestroy(event_); }

void CudaEvent::wait() {
  use(gpu_);
  check(cudaEventSynchronize(event_), "an event is waited for");
}

// One that was never recorded is reached.
bool CudaEvent::reached() {
  use(gpu_);
  const cudaError_t error = cudaEventQuery(event_);
  if (error == cudaErrorNotReady) return false;
  check(error, "an event is asked for");
  return true;
}

Seconds CudaEvent::since(const Event& earlier) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, static_cast<const CudaEvent&>(earlier).event_, event_),
        "a time is asked for");
  return {1e-3 * milliseconds};
}

CudaQueue::CudaQueue(int gpu) : Queue(false), gpu_(gpu) {
  use(gpu_);
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream is made");
}

CudaQueue::~CudaQueue() {
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
}

void CudaQueue::copy_in(std::byte* device, const std::byte* host, Bytes size) {
  if (size.count == 0) return;
  use(gpu_);
  check(cudaMemcpyAsync(device, host, static_cast<size_t>(size.count), cudaMemcpyHostToDevice, stream_),
        "a copy to it begins");
}

void CudaQueue::copy_out(std::byte* host, const std::byte* device, Bytes size) {
  if (size.count == 0) return;
  use(gpu_);
  check(cudaMemcpyAsync(host, device, static_cast<size_t>(size.count), cudaMemcpyDeviceToHost, stream_),
        "a copy from it begins");
}

void CudaQueue::fill(float* device, float value, int64_t count) {
  if (count == 0) return;
  use(gpu_);
  static const auto fill_words = of_driver<decltype(&cuMemsetD32Async)>("cuMemsetD32Async");
  check(fill_words(reinterpret_cast<CUdeviceptr>(device), std::bit_cast<unsigned>(value),
                   static_cast<size_t>(count), stream_),
        "a fill begins");
}

void CudaQueue::record(Event& event) {
  use(gpu_);
  check(cudaEventRecord(static_cast<CudaEvent&>(event).event_, stream_), "an event is recorded");
}

void CudaQueue::wait(Event& event) {
  use(gpu_);
  check(cudaStreamWaitEvent(stream_, static_cast<CudaEvent&>(event).event_, 0), "a stream waits");
}

void CudaQueue::finish() {
  use(gpu_);
  check(cudaStreamSynchronize(stream_), "work ends");
}

// Other threads go on with calls that a capture does not allow.
void CudaQueue::begin_capture() {
  use(gpu_);
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "a capture begins");
}

std::unique_ptr<Graph> CudaQueue::end_capture() {
  use(gpu_);
  cudaGraph_t captured = nullptr;
  check(cudaStreamEndCapture(stream_, &captured), "a capture ends");
  auto graph = std::make_unique<CudaGraph>();
  const cudaError_t error = cudaGraphInstantiate(&graph->executable, captured, 0);
  cudaGraphDestroy(captured);
  check(error, "a graph is made");
  return graph;
}

void CudaQueue::replay(Graph& graph) {
  use(gpu_);
  check(cudaGraphLaunch(static_cast<CudaGraph&>(graph).executable, stream_), "a graph begins");
}

void CudaQueue::launch_later(std::function<void()> work) {
  use(gpu_);
  work();
}

}  // namespace cortado::device::cuda
