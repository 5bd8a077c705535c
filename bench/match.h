#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <sys/mman.h>
#include <utility>
#include <vector>

#include "cortado/kernels/kernel.h"

namespace cortado {

inline double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Memory as the trainer has it: huge pages where the system gives them.
class HugeBuffer {
 public:
  explicit HugeBuffer(size_t elements) : bytes_((elements * sizeof(float) + page) / page * page) {
    data_ = static_cast<float*>(std::aligned_alloc(page, bytes_));
    madvise(data_, bytes_, MADV_HUGEPAGE);
    for (size_t i = 0; i < bytes_ / sizeof(float); ++i) data_[i] = static_cast<float>(i % 13) * 0.01f - 0.06f;
  }
  HugeBuffer(const HugeBuffer&) = delete;
  ~HugeBuffer() { std::free(data_); }
  float* data() { return data_; }

 private:
  static constexpr size_t page = 2 << 20;
  size_t bytes_;
  float* data_;
};

// Kernels of one convolution, and memory that all of them run on.
class Match {
 public:
  Match(const Task& task, std::vector<KernelOffer> offers)
      : offers_(std::move(offers)),
        x_(task.inputs[0].size()),
        y_(task.outputs[0].size()),
        dx_(task.inputs[0].size()),
        dy_(task.outputs[0].size()) {
    size_t elements = task.layer().parameters(task.inputs)[0].shape.size(), scratch = 0;
    for (const KernelOffer& offer : offers_) {
      const Kernel* kernel = offer.kernel.get();
      if (!kernel) continue;
      elements = std::max<size_t>(elements, kernel->parameter_format(0).elements);
      scratch = std::max<size_t>(scratch, kernel->scratch_bytes().count);
    }
    for (size_t bytes : {elements, elements, size_t(task.outputs[0][1]), size_t(task.outputs[0][1])})
      parameters_.push_back(std::make_unique<HugeBuffer>(bytes));
    scratch_ = std::make_unique<HugeBuffer>(scratch / sizeof(float) + 1);
    arguments_.inputs = {x_.data()};
    arguments_.outputs = {y_.data()};
    arguments_.input_gradients = {dx_.data()};
    arguments_.output_gradients = {dy_.data()};
    arguments_.parameters = {parameters_[0]->data(), parameters_[2]->data()};
    arguments_.parameter_gradients = {parameters_[1]->data(), parameters_[3]->data()};
    arguments_.scratch = reinterpret_cast<std::byte*>(scratch_->data());
  }

  const KernelOffer& offer(size_t contender) const { return offers_[contender]; }

  // The best time of each contender, 0 where it refuses.
  std::vector<double> times(void (Kernel::*pass)(const Arguments&), int repetitions) {
    std::vector<double> best(offers_.size());
    for (int i = 0; i < repetitions; ++i)
      for (size_t c = 0; c < offers_.size(); ++c) {
        if (!offers_[c].kernel) continue;
        const double seconds = seconds_of([&] { (offers_[c].kernel.get()->*pass)(arguments_); });
        best[c] = i == 0 ? seconds : std::min(best[c], seconds);
      }
    return best;
  }

 private:
  std::vector<KernelOffer> offers_;
  HugeBuffer x_, y_, dx_, dy_;
  std::vector<std::unique_ptr<HugeBuffer>> parameters_;  // weight, its gradient, bias, its gradient
  std::unique_ptr<HugeBuffer> scratch_;
  Arguments arguments_;
};

}  // namespace cortado
