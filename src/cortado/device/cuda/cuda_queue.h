#pragma once

#include "cortado/device/cuda/cuda_check.h"
#include "cortado/device/queue.h"

namespace cortado::device::cuda {

class CudaEvent : public Event {
 public:
  CudaEvent(int gpu, bool timed);
  ~CudaEvent() override;
  void wait() override;
  bool reached() override;
  Seconds since(const Event& earlier) const override;

 private:
  friend class CudaQueue;
  const int gpu_;
  cudaEvent_t event_ = nullptr;
};

// A stream of a GPU. Launched functions run at once, on that GPU, and start work on stream(); what they
// throw, they throw to the caller.
class CudaQueue : public Queue {
 public:
  explicit CudaQueue(int gpu);
  ~CudaQueue() override;

  void copy_in(std::byte* device, const std::byte* host, Bytes size) override;
  void copy_out(std::byte* host, const std::byte* device, Bytes size) override;
  void fill(float* device, float value, int64_t count) override;
  void record(Event& event) override;
  void wait(Event& event) override;
  void finish() override;
  void begin_capture() override;
  std::unique_ptr<Graph> end_capture() override;
  void replay(Graph& graph) override;
  void* stream() const override { return stream_; }

 private:
  void launch_later(std::function<void()> work) override;

  const int gpu_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace cortado::device::cuda
