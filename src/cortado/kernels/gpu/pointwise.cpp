#include "cortado/layers/pointwise.h"

#include <cmath>

#include "cortado/kernels/carry.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/values.h"

namespace cortado {
namespace gpu {
namespace {

// Each function of one element in float, and its derivative by x. Made of its options on the host.
struct ReluFunction {
  float slope_below;
  explicit ReluFunction(const ReluOptions& o) : slope_below(static_cast<float>(o.negative_slope)) {}
  CORTADO_EVERYWHERE float value(float x) const { return x > 0 ? x : slope_below * x; }
  CORTADO_EVERYWHERE float slope(float x) const { return x > 0 ? 1 : slope_below; }
};
struct Relu6Function {
  explicit Relu6Function(const Relu6Options&) {}
  CORTADO_EVERYWHERE float value(float x) const { return x < 0 ? 0 : x > 6 ? 6 : x; }
  CORTADO_EVERYWHERE float slope(float x) const { return 0 < x && x < 6; }
};
struct EluFunction {
  float alpha;
  explicit EluFunction(const EluOptions& o) : alpha(static_cast<float>(o.alpha)) {}
  CORTADO_EVERYWHERE float value(float x) const { return x > 0 ? x : alpha * expm1f(x); }
  CORTADO_EVERYWHERE float slope(float x) const { return x > 0 ? 1 : alpha * expf(x); }
};
CORTADO_EVERYWHERE inline float sigmoid(float x) { return 1 / (1 + expf(-x)); }
struct SigmoidFunction {
  explicit SigmoidFunction(const SigmoidOptions&) {}
  CORTADO_EVERYWHERE float value(float x) const { return sigmoid(x); }
  CORTADO_EVERYWHERE float slope(float x) const { return sigmoid(x) * sigmoid(-x); }
};
struct TanhFunction {
  explicit TanhFunction(const TanhOptions&) {}
  CORTADO_EVERYWHERE float value(float x) const { return tanhf(x); }
  CORTADO_EVERYWHERE float slope(float x) const { return (1 - tanhf(x)) * (1 + tanhf(x)); }
};
struct AbsFunction {
  explicit AbsFunction(const AbsOptions&) {}
  CORTADO_EVERYWHERE float value(float x) const { return fabsf(x); }
  CORTADO_EVERYWHERE float slope(float x) const { return static_cast<float>((x > 0) - (x < 0)); }
};
struct BnllFunction {
  explicit BnllFunction(const BnllOptions&) {}
  CORTADO_EVERYWHERE float value(float x) const { return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x))); }
  CORTADO_EVERYWHERE float slope(float x) const { return sigmoid(x); }
};
struct PowerFunction {
  float power, scale, shift;
  explicit PowerFunction(const PowerOptions& o)
      : power(static_cast<float>(o.power)),
        scale(static_cast<float>(o.scale)),
        shift(static_cast<float>(o.shift)) {}
  CORTADO_EVERYWHERE float value(float x) const { return powf(shift + scale * x, power); }
  CORTADO_EVERYWHERE float slope(float x) const {
    return power == 0 ? 0 : scale * power * powf(shift + scale * x, power - 1);
  }
};
inline float log_of_base(double base) { return base == -1 ? 1 : static_cast<float>(std::log(base)); }
struct ExpFunction {
  float factor, scale, shift;
  explicit ExpFunction(const ExpOptions& o)
      : factor(log_of_base(o.base)), scale(static_cast<float>(o.scale)), shift(static_cast<float>(o.shift)) {}
  CORTADO_EVERYWHERE float value(float x) const { return expf(factor * (shift + scale * x)); }
  CORTADO_EVERYWHERE float slope(float x) const { return value(x) * scale * factor; }
};
struct LogFunction {
  float factor, scale, shift;
  explicit LogFunction(const LogOptions& o)
      : factor(log_of_base(o.base)), scale(static_cast<float>(o.scale)), shift(static_cast<float>(o.shift)) {}
  CORTADO_EVERYWHERE float value(float x) const { return logf(shift + scale * x) / factor; }
  CORTADO_EVERYWHERE float slope(float x) const { return scale / ((shift + scale * x) * factor); }
};
struct SwishFunction {
  float beta;
  explicit SwishFunction(const SwishOptions& o) : beta(static_cast<float>(o.beta)) {}
  CORTADO_EVERYWHERE float value(float x) const { return x * sigmoid(beta * x); }
  CORTADO_EVERYWHERE float slope(float x) const {
    const float s = sigmoid(beta * x);
    return s + beta * x * s * sigmoid(-beta * x);
  }
};
struct ClipFunction {
  float least, most;
  explicit ClipFunction(const ClipOptions& o)
      : least(static_cast<float>(o.min)), most(static_cast<float>(o.max)) {}
  CORTADO_EVERYWHERE float value(float x) const { return x < least ? least : x > most ? most : x; }
  CORTADO_EVERYWHERE float slope(float x) const { return least <= x && x <= most; }
};
struct ThresholdFunction {
  float threshold;
  explicit ThresholdFunction(const ThresholdOptions& o) : threshold(static_cast<float>(o.threshold)) {}
  CORTADO_EVERYWHERE float value(float x) const { return x > threshold; }
  CORTADO_EVERYWHERE float slope(float) const { return 0; }
};

template <typename Function, typename E>
struct FunctionValue {
  Function function;
  const E* x;
  CORTADO_EVERYWHERE E operator()(int64_t i) const {
    const float value = value_of(x[i]);
    return rounded<E>(function.value(value) + value * 0);
  }
};

template <typename Function, typename E>
struct FunctionGradient {
  Function function;
  const E *x, *dy;
  CORTADO_EVERYWHERE E operator()(int64_t i) const {
    return rounded<E>(value_of(dy[i]) * function.slope(value_of(x[i])));
  }
};

template <typename Function>
class PointwiseKernel : public Kernel {
 public:
  PointwiseKernel(const Function& function, const Task& task)
      : function_(function), size_(task.local_output(0).size()), type_(task.input_type(0)) {}
  std::string name() const override { return "gpu pointwise"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  void forward(const Arguments& a) override {
    with_tensor_type(type_, [&]<typename E>() {
      for_each_value(a.stream, size_, elements<E>(a.outputs[0]),
                     FunctionValue<Function, E>{function_, elements<E>(a.inputs[0])});
    });
  }
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    with_tensor_type(type_, [&]<typename E>() {
      for_each_value(a.stream, size_, elements<E>(a.input_gradients[0]),
                     FunctionGradient<Function, E>{function_, elements<E>(a.inputs[0]),
                                                   elements<E>(a.output_gradients[0])});
    });
  }

 private:
  Function function_;
  int64_t size_;
  ElementType type_;
};

template <typename Function>
KernelOffer offer_pointwise(const Function& function, const Task& task) {
  return offered<PointwiseKernel<Function>>(function, task);
}
KernelOffer offer_of(const ReluOptions& o, const Task& t) { return offer_pointwise(ReluFunction(o), t); }
KernelOffer offer_of(const Relu6Options& o, const Task& t) { return offer_pointwise(Relu6Function(o), t); }
KernelOffer offer_of(const EluOptions& o, const Task& t) { return offer_pointwise(EluFunction(o), t); }
KernelOffer offer_of(const SigmoidOptions& o, const Task& t) {
  return offer_pointwise(SigmoidFunction(o), t);
}
KernelOffer offer_of(const TanhOptions& o, const Task& t) { return offer_pointwise(TanhFunction(o), t); }
KernelOffer offer_of(const AbsOptions& o, const Task& t) { return offer_pointwise(AbsFunction(o), t); }
KernelOffer offer_of(const BnllOptions& o, const Task& t) { return offer_pointwise(BnllFunction(o), t); }
KernelOffer offer_of(const PowerOptions& o, const Task& t) { return offer_pointwise(PowerFunction(o), t); }
KernelOffer offer_of(const ExpOptions& o, const Task& t) { return offer_pointwise(ExpFunction(o), t); }
KernelOffer offer_of(const LogOptions& o, const Task& t) { return offer_pointwise(LogFunction(o), t); }
KernelOffer offer_of(const SwishOptions& o, const Task& t) { return offer_pointwise(SwishFunction(o), t); }
KernelOffer offer_of(const ClipOptions& o, const Task& t) { return offer_pointwise(ClipFunction(o), t); }
KernelOffer offer_of(const ThresholdOptions& o, const Task& t) {
  return offer_pointwise(ThresholdFunction(o), t);
}

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_pointwise(const Task& task) {
  const auto* layer = dynamic_cast<const Pointwise*>(&task.layer());
  if (!layer) return {nullptr, "not pointwise"};
  if (auto refusal = gpu::one_type_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return std::visit([&](const auto& options) { return gpu::offer_of(options, task); }, layer->function());
}

}  // namespace cortado
