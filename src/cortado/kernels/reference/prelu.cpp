#include "cortado/layers/prelu.h"

#include <vector>

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"

namespace cortado {
namespace {

template <typename T>
class PReluReference : public KernelOf<T> {
 public:
  explicit PReluReference(const Task& task)
      : shared_(dynamic_cast<const PRelu&>(task.layer()).options().channel_shared),
        place_(tensor_place(task.output_boxes[0])) {}

  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override {
    for_each_index(place_.box(), [&](const Index& index) {
      int64_t i = place_(index);
      T x = a.inputs[0][i];
      a.outputs[0][i] = x > 0 ? x : a.parameters[0][slope(index)] * x;
    });
  }

  void backward(const ArgumentsOf<T>& a) override {
    std::vector<double> sums(shared_ ? 1 : place_.box()[1].size());
    for_each_index(place_.box(), [&](const Index& index) {
      int64_t i = place_(index);
      T x = a.inputs[0][i], dy = a.output_gradients[0][i];
      if (a.input_gradients[0]) a.input_gradients[0][i] = x > 0 ? dy : a.parameters[0][slope(index)] * dy;
      if (x <= 0) sums[slope(index)] += static_cast<double>(dy) * x;
    });
    if (a.parameter_gradients[0]) std::copy(sums.begin(), sums.end(), a.parameter_gradients[0]);
  }

 private:
  int64_t slope(const Index& index) const { return shared_ ? 0 : index[1] - place_.box()[1].begin; }

  bool shared_;
  Place place_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_prelu_reference(const Task& task) {
  return std::make_unique<PReluReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_prelu_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_prelu_reference<double>(const Task&);

}  // namespace cortado
