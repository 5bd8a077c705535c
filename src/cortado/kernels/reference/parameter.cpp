#include "cortado/layers/parameter.h"

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"

namespace cortado {
namespace {

using reference::Spoken;

template <typename T>
class ParameterReference : public KernelOf<T> {
 public:
  explicit ParameterReference(const Task& task) : shape_(task.local_output(0)) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override {
    Spoken<T> y(shape_, a.outputs[0]);
    for (int64_t i = 0; i < shape_.size(); ++i) y[i] = a.parameters[0][i];
  }

  void backward(const ArgumentsOf<T>& a) override {
    if (!a.parameter_gradients[0]) return;
    Spoken<const T> dy(shape_, a.output_gradients[0]);
    for (int64_t i = 0; i < shape_.size(); ++i) a.parameter_gradients[0][i] = dy[i];
  }

 private:
  Shape shape_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_parameter_reference(const Task& task) {
  return std::make_unique<ParameterReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_parameter_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_parameter_reference<double>(const Task&);

}  // namespace cortado
