#include "cortado/layers/reshape.h"

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"

namespace cortado {
namespace {

using reference::Spoken;

template <typename T>
class ReshapeReference : public KernelOf<T> {
 public:
  explicit ReshapeReference(const Task& task) : input_(task.local_input(0)), output_(task.local_output(0)) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const ArgumentsOf<T>& arguments) override {
    Spoken<const T> x(input_, arguments.inputs[0]);
    Spoken<T> y(output_, arguments.outputs[0]);
    for (int64_t i = 0; i < input_.size(); ++i) y[i] = x[i];
  }

  void backward(const ArgumentsOf<T>& arguments) override {
    if (!arguments.input_gradients[0]) return;
    Spoken<const T> dy(output_, arguments.output_gradients[0]);
    Spoken<T> dx(input_, arguments.input_gradients[0]);
    for (int64_t i = 0; i < input_.size(); ++i) dx[i] = dy[i];
  }

 private:
  Shape input_, output_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_reshape_reference(const Task& task) {
  return std::make_unique<ReshapeReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_reshape_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_reshape_reference<double>(const Task&);

}  // namespace cortado
