#include "cortado/layers/softmax.h"

#include <algorithm>
#include <cmath>

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"
#include "cortado/layers/axes.h"

namespace cortado {
namespace {

using reference::Spoken;

template <typename T>
class SoftmaxReference : public KernelOf<T> {
 public:
  explicit SoftmaxReference(const Task& task)
      : shape_(task.local_input(0)),
        view_(shape_, dynamic_cast<const Softmax&>(task.layer()).options().axis) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = true}; }

  void forward(const ArgumentsOf<T>& arguments) override {
    Spoken<const T> x(shape_, arguments.inputs[0]);
    Spoken<T> y(shape_, arguments.outputs[0]);
    for_each_line([&](auto index) {
      T maximum = x[index(0)];
      for (int64_t c = 1; c < view_.extent; ++c) maximum = std::max(maximum, x[index(c)]);
      double sum = 0;
      for (int64_t c = 0; c < view_.extent; ++c) sum += std::exp(static_cast<double>(x[index(c)] - maximum));
      for (int64_t c = 0; c < view_.extent; ++c) {
        y[index(c)] = static_cast<T>(std::exp(static_cast<double>(x[index(c)] - maximum)) / sum);
      }
    });
  }

  // dx = y (dy - sum(y dy))
  void backward(const ArgumentsOf<T>& arguments) override {
    if (!arguments.input_gradients[0]) return;
    Spoken<const T> y(shape_, arguments.outputs[0]), dy(shape_, arguments.output_gradients[0]);
    Spoken<T> dx(shape_, arguments.input_gradients[0]);
    for_each_line([&](auto index) {
      double sum = 0;
      for (int64_t c = 0; c < view_.extent; ++c) sum += static_cast<double>(y[index(c)]) * dy[index(c)];
      for (int64_t c = 0; c < view_.extent; ++c) {
        dx[index(c)] = static_cast<T>(y[index(c)] * (dy[index(c)] - sum));
      }
    });
  }

 private:
  // work(index) for every line along the axis, index(c) being the spoken index of its element c.
  template <typename Work>
  void for_each_line(Work&& work) const {
    for (int64_t i = 0; i < view_.before && view_.extent > 0; ++i) {
      for (int64_t j = 0; j < view_.behind; ++j) {
        work([&](int64_t c) { return (i * view_.extent + c) * view_.behind + j; });
      }
    }
  }

  Shape shape_;
  AxisView view_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_softmax_reference(const Task& task) {
  return std::make_unique<SoftmaxReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_softmax_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_softmax_reference<double>(const Task&);

}  // namespace cortado
