#pragma once

#include <optional>

#include "cortado/layers/layer_of.h"

namespace cortado {

struct BatchNormOptions {
  std::optional<bool> use_global_stats;  // absent: in testing only
  double moving_average_fraction = 0.999;
  double eps = 1e-5;

  bool global_statistics(Phase phase) const { return use_global_stats.value_or(phase == Phase::test); }
  static constexpr auto fields =
      std::tuple{field("use_global_stats", &BatchNormOptions::use_global_stats),
                 field("moving_average_fraction", &BatchNormOptions::moving_average_fraction),
                 field("eps", &BatchNormOptions::eps)};
};

// y = (x - mean) / sqrt(variance + eps) per channel (axis 1), without learned scale and shift (Scale has
// them). Batch statistics: mean and biased variance over all axes but 1, m elements a channel. Then, with f =
// moving_average_fraction: factor = f*factor + 1, mean' = f*mean' + mean, variance' = f*variance' + variance
// * m/(m-1) (m = 1: unscaled). Global statistics: mean'/factor and variance'/factor (0 while factor is 0),
// constants to the gradient. Parameters, not learnable: mean' C, variance' C, factor 1.
class BatchNorm : public LayerOf<BatchNormOptions> {
 public:
  using LayerOf::LayerOf;

  std::string_view type() const override { return "BatchNorm"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  // The same box: batch statistics travel as sums of their own.
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape>) const override { return Cuts::pointwise(); }
  std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const override;
  Box parameter_box(std::span<const Shape> inputs, int parameter, const Box& domain_box,
                    const Box& input_box) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  bool sums_statistics(Phase phase) const override { return !options().global_statistics(phase); }
  std::string_view f32_parts() const override { return "statistics"; }
  bool may_fuse_with(const Layer& next) const override;
};

}  // namespace cortado
