#include "cortado/layers/split.h"

#include <algorithm>
#include <vector>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/arrays.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/native.h"

namespace cortado {
namespace native {
namespace {

// Every output is x; dx = the sum of the outputs' gradients, of which those that are null count as zero.
template <typename E>
class SplitKernel : public Kernel {
 public:
  explicit SplitKernel(const Task& task) : size_(task.local_input(0).size()) {}

  std::string name() const override { return "native split"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }
  bool in_place() const override { return true; }

  // By pieces that stay in the first-level cache, so that x is read from memory once.
  void forward(const Arguments& arguments) override {
    constexpr int64_t piece = 4096;
    const E* x = elements<E>(arguments.inputs[0]);
    parallel_for((size_ + piece - 1) / piece, [&](int64_t number) {
      const int64_t first = number * piece, count = std::min(piece, size_ - first);
      for (float* output : arguments.outputs) {
        E* y = elements<E>(output);
        if (y && y != x) std::copy_n(x + first, count, y + first);
      }
    });
  }

  void backward(const Arguments& arguments) override {
    E* dx = elements<E>(arguments.input_gradients[0]);
    if (!dx) return;
    std::vector<const E*> dy;
    for (const float* gradient : arguments.output_gradients)
      if (gradient) dy.push_back(elements<E>(gradient));
    if (dy.empty()) {
      std::fill_n(dx, size_, E{});
    } else {
      arrays::sum(dx, std::span<const E* const>(dy), size_);
    }
  }

 private:
  int64_t size_;
};

}  // namespace
}  // namespace native

KernelOffer make_native_split(const Task& task) {
  if (task.layer().type() != "Split" || task.layers.size() != 1) return {nullptr, "only for Split"};
  return native::offer_by_type(task,
                               [&]<typename E>() { return std::make_unique<native::SplitKernel<E>>(task); });
}

}  // namespace cortado
