#include "cortado/layers/embed.h"

#include <algorithm>

#include "cortado/kernels/labels.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"

namespace cortado {
namespace {

using reference::Spoken;

template <typename T>
class EmbedReference : public KernelOf<T> {
 public:
  explicit EmbedReference(const Task& task)
      : options_(dynamic_cast<const Embed&>(task.layer()).options()),
        input_(task.local_input(0)),
        output_(task.local_output(0)),
        columns_(output_[output_.rank() - 1]) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  void forward(const ArgumentsOf<T>& arguments) override {
    Spoken<T> y(output_, arguments.outputs[0]);
    for_each_output(arguments, [&](int64_t output, int64_t row, int64_t column) {
      y[output] = arguments.parameters[0][row * columns_ + column];
      if (options_.bias_term) y[output] += arguments.parameters[1][column];
    });
  }

  void backward(const ArgumentsOf<T>& arguments) override {
    Spoken<const T> dy(output_, arguments.output_gradients[0]);
    T* weight = arguments.parameter_gradients[0];
    T* bias = options_.bias_term ? arguments.parameter_gradients[1] : nullptr;
    if (weight) std::fill_n(weight, options_.input_dim * columns_, T{0});
    if (bias) std::fill_n(bias, columns_, T{0});
    for_each_output(arguments, [&](int64_t output, int64_t row, int64_t column) {
      if (weight) weight[row * columns_ + column] += dy[output];
      if (bias) bias[column] += dy[output];
    });
  }

 private:
  // work(spoken output index, row of the weight, column) for every output element.
  template <typename Work>
  void for_each_output(const ArgumentsOf<T>& arguments, Work&& work) const {
    Spoken<const T> x(input_, arguments.inputs[0]);
    for (int64_t i = 0; i < input_.size(); ++i) {
      int64_t row = *class_of_label(x[i], options_.input_dim);
      for (int64_t column = 0; column < columns_; ++column) {
        work(i * columns_ + column, row, column);
      }
    }
  }

  EmbedOptions options_;
  Shape input_, output_;
  int64_t columns_;  // of this device
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_embed_reference(const Task& task) {
  return std::make_unique<EmbedReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_embed_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_embed_reference<double>(const Task&);

}  // namespace cortado
