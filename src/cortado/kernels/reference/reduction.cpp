#include "cortado/layers/reduction.h"

#include <cmath>

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"

namespace cortado {
namespace {

using reference::Spoken;

template <typename T>
class ReductionReference : public KernelOf<T> {
 public:
  using Operation = ReductionOptions::Operation;

  explicit ReductionReference(const Task& task)
      : options_(dynamic_cast<const Reduction&>(task.layer()).options()),
        input_(task.local_input(0)),
        output_(task.local_output(0)),
        length_(input_.count(output_.rank())),
        factor_(options_.operation == Operation::mean ? options_.coeff / length_ : options_.coeff) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override {
    bool linear = options_.operation == Operation::sum || options_.operation == Operation::mean;
    return {.inputs = !linear, .outputs = false};
  }

  void forward(const ArgumentsOf<T>& arguments) override {
    Spoken<const T> x(input_, arguments.inputs[0]);
    Spoken<T> y(output_, arguments.outputs[0]);
    for (int64_t i = 0; i < output_.size(); ++i) {
      double sum = 0;
      for (int64_t k = i * length_; k < (i + 1) * length_; ++k) sum += term(x[k]);
      y[i] = static_cast<T>(factor_ * sum);
    }
  }

  void backward(const ArgumentsOf<T>& arguments) override {
    if (!arguments.input_gradients[0]) return;
    Spoken<const T> x(input_, arguments.inputs[0]), dy(output_, arguments.output_gradients[0]);
    Spoken<T> dx(input_, arguments.input_gradients[0]);
    bool reads_input = backward_reads().inputs;
    for (int64_t k = 0; k < input_.size(); ++k) {
      dx[k] = static_cast<T>(factor_ * dy[k / length_] * (reads_input ? slope(x[k]) : 1));
    }
  }

 private:
  double term(double x) const {
    if (options_.operation == Operation::asum) return std::abs(x);
    return options_.operation == Operation::sumsq ? x * x : x;
  }
  double slope(double x) const {
    if (options_.operation == Operation::sumsq) return 2 * x;
    return x > 0 ? 1 : x < 0 ? -1 : 0;
  }

  ReductionOptions options_;
  Shape input_, output_;
  int64_t length_;
  double factor_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_reduction_reference(const Task& task) {
  return std::make_unique<ReductionReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_reduction_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_reduction_reference<double>(const Task&);

}  // namespace cortado
