#include "cortado/layers/pointwise.h"

#include <cmath>

#include "cortado/kernels/carry.h"
#include "cortado/kernels/reference/reference.h"

namespace cortado {
namespace {

double log_of_base(double base) { return base == -1 ? 1 : std::log(base); }

double value(const ReluOptions& o, double x) { return x > 0 ? x : o.negative_slope * x; }
double value(const Relu6Options&, double x) { return x < 0 ? 0 : x > 6 ? 6 : x; }
double value(const EluOptions& o, double x) { return x > 0 ? x : o.alpha * std::expm1(x); }
double value(const SigmoidOptions&, double x) { return 1 / (1 + std::exp(-x)); }
double value(const TanhOptions&, double x) { return std::tanh(x); }
double value(const AbsOptions&, double x) { return std::abs(x); }
double value(const BnllOptions&, double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double value(const PowerOptions& o, double x) { return std::pow(o.shift + o.scale * x, o.power); }
double value(const ExpOptions& o, double x) {
  return std::exp(log_of_base(o.base) * (o.shift + o.scale * x));
}
double value(const LogOptions& o, double x) { return std::log(o.shift + o.scale * x) / log_of_base(o.base); }
double value(const SwishOptions& o, double x) { return x * value(SigmoidOptions{}, o.beta * x); }
double value(const ClipOptions& o, double x) { return x < o.min ? o.min : x > o.max ? o.max : x; }
double value(const ThresholdOptions& o, double x) { return x > o.threshold; }

double slope(const ReluOptions& o, double x) { return x > 0 ? 1 : o.negative_slope; }
double slope(const Relu6Options&, double x) { return 0 < x && x < 6; }
double slope(const EluOptions& o, double x) { return x > 0 ? 1 : o.alpha * std::exp(x); }
double slope(const SigmoidOptions& o, double x) { return value(o, x) * (1 - value(o, x)); }
double slope(const TanhOptions&, double x) { return 1 - std::tanh(x) * std::tanh(x); }
double slope(const AbsOptions&, double x) { return (x > 0) - (x < 0); }
double slope(const BnllOptions&, double x) { return value(SigmoidOptions{}, x); }
double slope(const PowerOptions& o, double x) {
  return o.power == 0 ? 0 : o.scale * o.power * std::pow(o.shift + o.scale * x, o.power - 1);
}
double slope(const ExpOptions& o, double x) { return value(o, x) * o.scale * log_of_base(o.base); }
double slope(const LogOptions& o, double x) {
  return o.scale / ((o.shift + o.scale * x) * log_of_base(o.base));
}
double slope(const SwishOptions& o, double x) {
  return value(SigmoidOptions{}, o.beta * x) + o.beta * x * slope(SigmoidOptions{}, o.beta * x);
}
double slope(const ClipOptions& o, double x) { return o.min <= x && x <= o.max; }
double slope(const ThresholdOptions&, double) { return 0; }

template <typename T>
class PointwiseReference : public KernelOf<T> {
 public:
  explicit PointwiseReference(const Task& task)
      : function_(dynamic_cast<const Pointwise&>(task.layer()).function()),
        size_(task.local_output(0).size()) {}

  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override {
    std::visit(
        [&](const auto& options) {
          for (int64_t i = 0; i < size_; ++i)
            a.outputs[0][i] = carry(value(options, a.inputs[0][i]), static_cast<double>(a.inputs[0][i]));
        },
        function_);
  }

  void backward(const ArgumentsOf<T>& a) override {
    if (!a.input_gradients[0]) return;
    std::visit(
        [&](const auto& options) {
          for (int64_t i = 0; i < size_; ++i) {
            a.input_gradients[0][i] = a.output_gradients[0][i] * slope(options, a.inputs[0][i]);
          }
        },
        function_);
  }

 private:
  PointwiseFunction function_;
  int64_t size_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_pointwise_reference(const Task& task) {
  return std::make_unique<PointwiseReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_pointwise_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_pointwise_reference<double>(const Task&);

}  // namespace cortado
