#include "cortado/layers/eltwise.h"

#include "cortado/kernels/carry.h"
#include "cortado/kernels/reference/reference.h"

namespace cortado {
namespace {

template <typename T>
class EltwiseReference : public KernelOf<T> {
 public:
  using Operation = EltwiseOptions::Operation;

  explicit EltwiseReference(const Task& task)
      : options_(dynamic_cast<const Eltwise&>(task.layer()).options()), size_(task.local_output(0).size()) {}
  std::string name() const override { return "reference"; }

  void forward(const ArgumentsOf<T>& arguments) override {
    for (int64_t i = 0; i < size_; ++i) arguments.outputs[0][i] = static_cast<T>(value(arguments.inputs, i));
  }

  void backward(const ArgumentsOf<T>& arguments) override {
    for (size_t input = 0; input < arguments.inputs.size(); ++input) {
      T* dx = arguments.input_gradients[input];
      for (int64_t i = 0; i < size_ && dx; ++i) {
        dx[i] = static_cast<T>(arguments.output_gradients[0][i] * slope(arguments, input, i));
      }
    }
  }

 private:
  double coefficient(size_t input) const { return options_.coeff.empty() ? 1 : options_.coeff[input]; }

  double value(const std::vector<const T*>& x, int64_t i) const {
    double result = options_.operation == Operation::prod ? 1 : 0;
    if (options_.operation == Operation::max) result = x[largest(x, i)][i];
    for (size_t input = 0; input < x.size(); ++input) {
      if (options_.operation == Operation::max) result = carry(result, static_cast<double>(x[input][i]));
      if (options_.operation == Operation::prod) result *= x[input][i];
      if (options_.operation == Operation::sum) result += coefficient(input) * x[input][i];
    }
    return result;
  }

  // Returns the largest input: of equal inputs 0 and 1 the second; later inputs only when larger.
  size_t largest(const std::vector<const T*>& x, int64_t i) const {
    size_t best = x[0][i] > x[1][i] ? 0 : 1;
    for (size_t input = 2; input < x.size(); ++input) {
      if (x[input][i] > x[best][i]) best = input;
    }
    return best;
  }

  // Derivative of the output by that input.
  double slope(const ArgumentsOf<T>& arguments, size_t input, int64_t i) const {
    const std::vector<const T*>& x = arguments.inputs;
    if (options_.operation == Operation::sum) return coefficient(input);
    if (options_.operation == Operation::max) return largest(x, i) == input ? 1 : 0;
    if (!options_.stable_prod_grad) return static_cast<double>(arguments.outputs[0][i]) / x[input][i];
    double product = 1;
    for (size_t other = 0; other < x.size(); ++other) product *= other == input ? 1 : x[other][i];
    return product;
  }

  EltwiseOptions options_;
  int64_t size_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_eltwise_reference(const Task& task) {
  return std::make_unique<EltwiseReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_eltwise_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_eltwise_reference<double>(const Task&);

}  // namespace cortado
