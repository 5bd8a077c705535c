#pragma once

#include <variant>

#include "cortado/layers/layer.h"

namespace cortado {

// Functions of one element, y = f(x). A base of -1 means e.
struct ReluOptions {  // x > 0 ? x : negative_slope * x
  double negative_slope = 0;
  bool operator==(const ReluOptions&) const = default;
};
struct EluOptions {  // x > 0 ? x : alpha * (e^x - 1)
  double alpha = 1;
  bool operator==(const EluOptions&) const = default;
};
struct SigmoidOptions {  // 1 / (1 + e^-x)
  bool operator==(const SigmoidOptions&) const = default;
};
struct TanhOptions {  // tanh x
  bool operator==(const TanhOptions&) const = default;
};
struct AbsOptions {  // |x|
  bool operator==(const AbsOptions&) const = default;
};
struct BnllOptions {  // log(1 + e^x)
  bool operator==(const BnllOptions&) const = default;
};
struct PowerOptions {  // (shift + scale * x)^power
  double power = 1, scale = 1, shift = 0;
  bool operator==(const PowerOptions&) const = default;
};
struct ExpOptions {  // base^(shift + scale * x)
  double base = -1, scale = 1, shift = 0;
  bool operator==(const ExpOptions&) const = default;
};
struct LogOptions {  // log_base(shift + scale * x)
  double base = -1, scale = 1, shift = 0;
  bool operator==(const LogOptions&) const = default;
};

using PointwiseFunction = std::variant<ReluOptions, EluOptions, SigmoidOptions, TanhOptions, AbsOptions,
                                       BnllOptions, PowerOptions, ExpOptions, LogOptions>;

// ReLU, ELU, Sigmoid, TanH, AbsVal, BNLL, Power, Exp and Log: one input, one output of its shape.
class Pointwise : public Layer {
 public:
  explicit Pointwise(PointwiseFunction function);  // throws UserError on a base that is not -1 or > 0
  const PointwiseFunction& function() const { return function_; }

  std::string_view type() const override;
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape>) const override { return Cuts::pointwise(); }

 private:
  PointwiseFunction function_;
};

}  // namespace cortado
