#include "cortado/layers/axpy.h"

#include <vector>

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"

namespace cortado {
namespace {

template <typename T>
class AxpyReference : public KernelOf<T> {
 public:
  explicit AxpyReference(const Task& task)
      : factor_(tensor_place(task.input_boxes[0])), place_(tensor_place(task.output_boxes[0])) {}

  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override {
    for_each_index(place_.box(), [&](const Index& index) {
      const int64_t i = place_(index);
      a.outputs[0][i] = static_cast<double>(a.inputs[0][factor(index)]) * a.inputs[1][i] + a.inputs[2][i];
    });
  }

  void backward(const ArgumentsOf<T>& a) override {
    std::vector<double> sums(factor_.size());
    for_each_index(place_.box(), [&](const Index& index) {
      const int64_t i = place_(index);
      const double dy = a.output_gradients[0][i];
      sums[factor(index)] += dy * a.inputs[1][i];
      if (a.input_gradients[1]) a.input_gradients[1][i] = dy * a.inputs[0][factor(index)];
      if (a.input_gradients[2]) a.input_gradients[2][i] = dy;
    });
    if (a.input_gradients[0]) std::copy(sums.begin(), sums.end(), a.input_gradients[0]);
  }

 private:
  // Offset of the factor of an element of the output.
  int64_t factor(const Index& index) const {
    Index at{};
    at[0] = index[0], at[1] = index[1];
    return factor_(at);
  }

  Place factor_, place_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_axpy_reference(const Task& task) {
  return std::make_unique<AxpyReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_axpy_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_axpy_reference<double>(const Task&);

}  // namespace cortado
