#include "cortado/layers/split.h"

#include <algorithm>

#include "cortado/kernels/reference/reference.h"

namespace cortado {
namespace {

template <typename T>
class SplitReference : public KernelOf<T> {
 public:
  explicit SplitReference(const Task& task) : size_(task.local_input(0).size()) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const ArgumentsOf<T>& arguments) override {
    for (T* output : arguments.outputs) std::copy_n(arguments.inputs[0], size_, output);
  }

  // An output without a gradient (null) counts as zero.
  void backward(const ArgumentsOf<T>& arguments) override {
    if (!arguments.input_gradients[0]) return;
    for (int64_t i = 0; i < size_; ++i) {
      double sum = 0;
      for (const T* gradient : arguments.output_gradients) sum += gradient ? gradient[i] : 0;
      arguments.input_gradients[0][i] = static_cast<T>(sum);
    }
  }

 private:
  int64_t size_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_split_reference(const Task& task) {
  return std::make_unique<SplitReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_split_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_split_reference<double>(const Task&);

}  // namespace cortado
