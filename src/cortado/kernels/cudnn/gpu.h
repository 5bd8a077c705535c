#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cortado/kernels/cudnn/plan.h"

namespace cortado::cudnn {

// cuDNN on one GPU, with the plans that were found for it. Any thread may call.
class Gpu {
 public:
  using Pointers = std::vector<std::pair<TensorId, const void*>>;

  // That of the calling thread's GPU; kernels of one GPU share it. Throws Refusal where there is none.
  static std::shared_ptr<Gpu> current();
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  // The fastest of the heuristics' best guesses, measured once for equal graphs; nothing: there is none.
  std::optional<Plan> plan(const GraphOf& of);
  // Starts the plan on a stream (cudaStream_t). Throws InternalError where it does not start.
  void run(const Plan& plan, void* stream, const Pointers& pointers, std::byte* workspace);

 private:
  explicit Gpu(int number);
  void start(const Plan& plan, void* stream, const Pointers& pointers, void* workspace);
  std::optional<Plan> measured(const GraphOf& of);

  const int number_;
  cudnnHandle_t handle_ = nullptr;
  std::mutex mutex_;  // of the handle, whose stream each run sets, and of the plans
  std::map<std::string, std::optional<Plan>> plans_;
};

}  // namespace cortado::cudnn
