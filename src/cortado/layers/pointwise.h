#pragma once

#include <optional>
#include <variant>

#include "cortado/layers/layer_of.h"

namespace cortado {

// Functions of one element, y = f(x), with the type of their layer. A base of -1 means e.
struct ReluOptions {  // x > 0 ? x : negative_slope * x
  static constexpr std::string_view type = "ReLU";
  double negative_slope = 0;
  static constexpr auto fields = std::tuple{field("negative_slope", &ReluOptions::negative_slope)};
};
struct Relu6Options {  // x from 0 to 6, else the nearer of these; its gradient is 0 beyond them
  static constexpr std::string_view type = "ReLU6";
  static constexpr auto fields = std::tuple{};
};
struct EluOptions {  // x > 0 ? x : alpha * (e^x - 1)
  static constexpr std::string_view type = "ELU";
  double alpha = 1;
  static constexpr auto fields = std::tuple{field("alpha", &EluOptions::alpha)};
};
struct SigmoidOptions {  // 1 / (1 + e^-x)
  static constexpr std::string_view type = "Sigmoid";
  static constexpr auto fields = std::tuple{};
};
struct TanhOptions {  // tanh x
  static constexpr std::string_view type = "TanH";
  static constexpr auto fields = std::tuple{};
};
struct AbsOptions {  // |x|
  static constexpr std::string_view type = "AbsVal";
  static constexpr auto fields = std::tuple{};
};
struct BnllOptions {  // log(1 + e^x)
  static constexpr std::string_view type = "BNLL";
  static constexpr auto fields = std::tuple{};
};
struct PowerOptions {  // (shift + scale * x)^power
  static constexpr std::string_view type = "Power";
  double power = 1, scale = 1, shift = 0;
  static constexpr auto fields =
      std::tuple{field("power", &PowerOptions::power), field("scale", &PowerOptions::scale),
                 field("shift", &PowerOptions::shift)};
};
struct ExpOptions {  // base^(shift + scale * x)
  static constexpr std::string_view type = "Exp";
  double base = -1, scale = 1, shift = 0;
  static constexpr auto fields =
      std::tuple{field("base", &ExpOptions::base), field("scale", &ExpOptions::scale),
                 field("shift", &ExpOptions::shift)};
};
struct LogOptions {  // log_base(shift + scale * x)
  static constexpr std::string_view type = "Log";
  double base = -1, scale = 1, shift = 0;
  static constexpr auto fields =
      std::tuple{field("base", &LogOptions::base), field("scale", &LogOptions::scale),
                 field("shift", &LogOptions::shift)};
};
struct SwishOptions {  // x / (1 + e^(-beta * x))
  static constexpr std::string_view type = "Swish";
  double beta = 1;
  static constexpr auto fields = std::tuple{field("beta", &SwishOptions::beta)};
};
struct ClipOptions {  // x from min to max, else the nearer of these; its gradient is 0 beyond them
  static constexpr std::string_view type = "Clip";
  double min = 0, max = 1;
  static constexpr auto fields = std::tuple{field("min", &ClipOptions::min), field("max", &ClipOptions::max)};
};
struct ThresholdOptions {  // x > threshold ? 1 : 0; it has no gradient
  static constexpr std::string_view type = "Threshold";
  double threshold = 0;
  static constexpr auto fields = std::tuple{field("threshold", &ThresholdOptions::threshold)};
};

using PointwiseFunction =
    std::variant<ReluOptions, Relu6Options, EluOptions, SigmoidOptions, TanhOptions, AbsOptions, BnllOptions,
                 PowerOptions, ExpOptions, LogOptions, SwishOptions, ClipOptions, ThresholdOptions>;
// The types of them all.
std::vector<std::string_view> pointwise_types();

// One input, one output of its shape.
class Pointwise : public LayerOf<PointwiseFunction> {
 public:
  explicit Pointwise(PointwiseFunction function);  // throws UserError on a base that is not -1 or > 0
  const PointwiseFunction& function() const { return options(); }

  std::string_view type() const override;
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape>) const override { return Cuts::pointwise(); }
  bool differentiable(int) const override { return !std::holds_alternative<ThresholdOptions>(options_); }
};

// Says whether a layer is a ReLU, of any slope.
bool is_relu(const Layer& layer);

// Functions that nets have after a normalization, whose kernels compute them, too.
using Activation = std::variant<ReluOptions, Relu6Options, SwishOptions, ClipOptions>;
// The layer's; nothing where it is another layer or a ReLU of a slope below 0.
std::optional<Activation> activation_of(const Layer& layer);

}  // namespace cortado
