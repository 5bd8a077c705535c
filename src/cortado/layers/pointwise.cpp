#include "cortado/layers/pointwise.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

void check_base(double base, bool one_allowed) {
  if (base == -1 || (base > 0 && (one_allowed || base != 1))) return;
  throw UserError(
      fmt::format("base is {}, must be positive{}, or -1 for e", base, one_allowed ? "" : " and not 1"));
}

template <typename... Functions>
std::vector<std::string_view> types_of(const std::variant<Functions...>&) {
  return {Functions::type...};
}

}  // namespace

std::vector<std::string_view> pointwise_types() { return types_of(PointwiseFunction()); }

Pointwise::Pointwise(PointwiseFunction function) : LayerOf(function) {
  if (auto* exp = std::get_if<ExpOptions>(&options_)) check_base(exp->base, true);
  if (auto* log = std::get_if<LogOptions>(&options_)) check_base(log->base, false);
}

std::string_view Pointwise::type() const {
  return std::visit([](const auto& options) { return options.type; }, options_);
}

std::vector<Shape> Pointwise::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 1, 1);
  check_count("outputs", outputs, 1, 1);
  return {inputs[0]};
}

Box Pointwise::input_box(std::span<const Shape>, int, int, const Box& output_box) const { return output_box; }

bool is_relu(const Layer& layer) {
  const auto* pointwise = dynamic_cast<const Pointwise*>(&layer);
  return pointwise && std::holds_alternative<ReluOptions>(pointwise->function());
}

std::optional<Activation> activation_of(const Layer& layer) {
  const auto* pointwise = dynamic_cast<const Pointwise*>(&layer);
  if (!pointwise) return {};
  return std::visit(
      []<typename Options>(const Options& options) -> std::optional<Activation> {
        if constexpr (std::is_constructible_v<Activation, Options>) {
          if constexpr (std::is_same_v<Options, ReluOptions>)
            if (options.negative_slope < 0) return {};
          return options;
        }
        return {};
      },
      pointwise->function());
}

}  // namespace cortado
