#pragma once

#include <cmath>

#include "cortado/kernels/everywhere.h"
#include "cortado/layers/pointwise.h"

namespace cortado::gpu {

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

// The function of these options.
inline ReluFunction gpu_function(const ReluOptions& o) { return ReluFunction(o); }
inline Relu6Function gpu_function(const Relu6Options& o) { return Relu6Function(o); }
inline EluFunction gpu_function(const EluOptions& o) { return EluFunction(o); }
inline SigmoidFunction gpu_function(const SigmoidOptions& o) { return SigmoidFunction(o); }
inline TanhFunction gpu_function(const TanhOptions& o) { return TanhFunction(o); }
inline AbsFunction gpu_function(const AbsOptions& o) { return AbsFunction(o); }
inline BnllFunction gpu_function(const BnllOptions& o) { return BnllFunction(o); }
inline PowerFunction gpu_function(const PowerOptions& o) { return PowerFunction(o); }
inline ExpFunction gpu_function(const ExpOptions& o) { return ExpFunction(o); }
inline LogFunction gpu_function(const LogOptions& o) { return LogFunction(o); }
inline SwishFunction gpu_function(const SwishOptions& o) { return SwishFunction(o); }
inline ClipFunction gpu_function(const ClipOptions& o) { return ClipFunction(o); }
inline ThresholdFunction gpu_function(const ThresholdOptions& o) { return ThresholdFunction(o); }

}  // namespace cortado::gpu
