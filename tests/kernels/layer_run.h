#pragma once

#include "cortado/kernels/reference/reference.h"

#include "tests/kernels/buffers.h"

namespace cortado::check {

// The reference kernel of a whole layer in double, run on values written out in a test (channels last).
class LayerRun {
 public:
  LayerRun(LayerPtr layer, std::vector<Shape> inputs, int outputs)
      : task_(whole_task(std::move(layer), Phase::train, inputs, outputs)),
        kernel_(make_reference_kernel<double>(task_)),
        buffers_(task_, *kernel_, TaskData<double>(task_, {})) {}

  void set_parameters(double value) {
    for (auto& each : buffers_.parameters) each.set(std::vector<double>(each.size(), value));
  }
  void forward(const std::vector<std::vector<double>>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) buffers_.inputs[i].set(inputs[i]);
    kernel_->forward(buffers_.arguments());
  }
  void backward(const std::vector<double>& gradient) {
    buffers_.output_gradients[0].set(gradient);
    kernel_->backward(buffers_.arguments());
  }
  std::vector<double> output(int i = 0) const { return buffers_.outputs[i].values(); }
  std::vector<double> gradient(int i = 0) const { return buffers_.input_gradients[i].values(); }

 private:
  Task task_;
  std::unique_ptr<KernelOf<double>> kernel_;
  TaskBuffers<double> buffers_;
};

// Equal within 1e-12 of each other.
inline testing::AssertionResult same(const std::vector<double>& actual, const std::vector<double>& expected) {
  if (actual.size() != expected.size()) return testing::AssertionFailure() << actual.size() << " elements";
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::abs(actual[i] - expected[i]) <= 1e-12) continue;
    return testing::AssertionFailure() << "element " << i << " is " << actual[i] << ", not " << expected[i];
  }
  return testing::AssertionSuccess();
}

}  // namespace cortado::check
