#pragma once

#include <cmath>

#include "cortado/kernels/native/vector_math.h"
#include "cortado/layers/pointwise.h"

namespace cortado::native {

// What the derivative of a function is computed from.
enum class DerivativeOf { input, output };

// y = value(x), dx = gradient(dy, x or y) with `from` saying which.
struct Relu {
  static constexpr DerivativeOf from = DerivativeOf::output;
  float slope;
  explicit Relu(const ReluOptions& options) : slope(static_cast<float>(options.negative_slope)) {}
  template <typename V>
  V value(V x) const {
    return x > 0 ? x : slope * x;
  }
  template <typename V>
  V gradient(V dy, V y) const {
    return y > 0 ? dy : slope * dy;
  }
};

struct Relu6 {
  static constexpr DerivativeOf from = DerivativeOf::output;
  explicit Relu6(const Relu6Options&) {}
  template <typename V>
  V value(V x) const {
    return x < 0 ? splat<V>(0) : x > 6 ? splat<V>(6) : x;
  }
  template <typename V>
  V gradient(V dy, V y) const {
    return y > 0 ? (y < 6 ? dy : 0 * dy) : 0 * dy;
  }
};

struct Elu {
  static constexpr DerivativeOf from = DerivativeOf::output;
  float alpha;
  explicit Elu(const EluOptions& options) : alpha(static_cast<float>(options.alpha)) {}
  template <typename V>
  V value(V x) const {
    return x > 0 ? x : alpha * (exp(x) - 1);
  }
  template <typename V>
  V gradient(V dy, V y) const {
    return y > 0 ? dy : dy * (y + alpha);
  }
};

struct Sigmoid {
  static constexpr DerivativeOf from = DerivativeOf::output;
  explicit Sigmoid(const SigmoidOptions&) {}
  template <typename V>
  V value(V x) const {
    return sigmoid(x);
  }
  template <typename V>
  V gradient(V dy, V y) const {
    return dy * y * (1 - y);
  }
};

struct Tanh {
  static constexpr DerivativeOf from = DerivativeOf::output;
  explicit Tanh(const TanhOptions&) {}
  template <typename V>
  V value(V x) const {
    return tanh(x);
  }
  template <typename V>
  V gradient(V dy, V y) const {
    return dy * (1 - y * y);
  }
};

struct Absolute {
  static constexpr DerivativeOf from = DerivativeOf::input;
  explicit Absolute(const AbsOptions&) {}
  template <typename V>
  V value(V x) const {
    return absolute(x);
  }
  template <typename V>
  V gradient(V dy, V x) const {
    return x > 0 ? dy : x < 0 ? -dy : 0 * dy;
  }
};

struct Bnll {
  static constexpr DerivativeOf from = DerivativeOf::input;
  explicit Bnll(const BnllOptions&) {}
  template <typename V>
  V value(V x) const {
    return maximum(x, V{}) + by_lane(exp(-absolute(x)), [](float e) { return std::log1p(e); });
  }
  template <typename V>
  V gradient(V dy, V x) const {
    return dy * sigmoid(x);
  }
};

struct Power {
  static constexpr DerivativeOf from = DerivativeOf::input;
  float power, scale, shift;
  explicit Power(const PowerOptions& options)
      : power(static_cast<float>(options.power)),
        scale(static_cast<float>(options.scale)),
        shift(static_cast<float>(options.shift)) {}
  template <typename V>
  V value(V x) const {
    return raise(shift + scale * x, power);
  }
  template <typename V>
  V gradient(V dy, V x) const {
    if (power == 0) return 0 * dy;
    return dy * (power * scale) * raise(shift + scale * x, power - 1);
  }
  template <typename V>
  static V raise(V base, float exponent) {
    if (exponent == 0) return splat<V>(1);
    if (exponent == 1) return base;
    if (exponent == 2) return base * base;
    return by_lane(base, [exponent](float value) { return std::pow(value, exponent); });
  }
};

inline float logarithm_of_base(double base) { return base == -1 ? 1.0f : static_cast<float>(std::log(base)); }

struct Exponential {
  static constexpr DerivativeOf from = DerivativeOf::output;
  float scale, shift;  // base^(shift + scale*x) = e^(log(base) * (shift + scale*x))
  explicit Exponential(const ExpOptions& options)
      : scale(static_cast<float>(options.scale) * logarithm_of_base(options.base)),
        shift(static_cast<float>(options.shift) * logarithm_of_base(options.base)) {}
  template <typename V>
  V value(V x) const {
    return by_lane(shift + scale * x, [](float exponent) { return std::exp(exponent); });
  }
  template <typename V>
  V gradient(V dy, V y) const {
    return dy * y * scale;
  }
};

struct Logarithm {
  static constexpr DerivativeOf from = DerivativeOf::input;
  float scale, shift, factor;
  explicit Logarithm(const LogOptions& options)
      : scale(static_cast<float>(options.scale)),
        shift(static_cast<float>(options.shift)),
        factor(1 / logarithm_of_base(options.base)) {}
  template <typename V>
  V value(V x) const {
    return factor * by_lane(shift + scale * x, [](float value) { return std::log(value); });
  }
  template <typename V>
  V gradient(V dy, V x) const {
    return dy * (factor * scale) / (shift + scale * x);
  }
};

struct Swish {
  static constexpr DerivativeOf from = DerivativeOf::input;
  float beta;
  explicit Swish(const SwishOptions& options) : beta(static_cast<float>(options.beta)) {}
  template <typename V>
  V value(V x) const {
    return x * sigmoid(beta * x);
  }
  template <typename V>
  V gradient(V dy, V x) const {
    const V s = sigmoid(beta * x);
    return dy * (s + beta * x * s * (1 - s));
  }
};

struct Clip {
  static constexpr DerivativeOf from = DerivativeOf::input;
  float min, max;
  explicit Clip(const ClipOptions& options)
      : min(static_cast<float>(options.min)), max(static_cast<float>(options.max)) {}
  template <typename V>
  V value(V x) const {
    return x < min ? splat<V>(min) : x > max ? splat<V>(max) : x;
  }
  template <typename V>
  V gradient(V dy, V x) const {
    return x < min ? 0 * dy : x > max ? 0 * dy : dy;
  }
};

struct Threshold {
  static constexpr DerivativeOf from = DerivativeOf::output;
  float threshold;
  explicit Threshold(const ThresholdOptions& options) : threshold(static_cast<float>(options.threshold)) {}
  template <typename V>
  V value(V x) const {
    return x > threshold ? splat<V>(1) : splat<V>(0);
  }
  template <typename V>
  V gradient(V dy, V) const {
    return 0 * dy;
  }
};

// Return the function object that computes these options.
inline Relu native_function(const ReluOptions& options) { return Relu(options); }
inline Relu6 native_function(const Relu6Options& options) { return Relu6(options); }
inline Elu native_function(const EluOptions& options) { return Elu(options); }
inline Sigmoid native_function(const SigmoidOptions& options) { return Sigmoid(options); }
inline Tanh native_function(const TanhOptions& options) { return Tanh(options); }
inline Absolute native_function(const AbsOptions& options) { return Absolute(options); }
inline Bnll native_function(const BnllOptions& options) { return Bnll(options); }
inline Power native_function(const PowerOptions& options) { return Power(options); }
inline Exponential native_function(const ExpOptions& options) { return Exponential(options); }
inline Logarithm native_function(const LogOptions& options) { return Logarithm(options); }
inline Swish native_function(const SwishOptions& options) { return Swish(options); }
inline Clip native_function(const ClipOptions& options) { return Clip(options); }
inline Threshold native_function(const ThresholdOptions& options) { return Threshold(options); }

}  // namespace cortado::native
