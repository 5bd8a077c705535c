#pragma once

#include <optional>

#include "cortado/layers/layer_of.h"

namespace cortado {

struct ArgMaxOptions {
  bool out_max_val = false;
  int top_k = 1;
  std::optional<int> axis;
  static constexpr auto fields =
      std::tuple{field("out_max_val", &ArgMaxOptions::out_max_val), field("top_k", &ArgMaxOptions::top_k),
                 field("axis", &ArgMaxOptions::axis)};
};

// Indices of the top_k largest elements, largest first; of equal ones the larger index first (Caffe's rule).
// With `axis`: along it, output = input shape with that extent top_k; out_max_val gives the values instead.
// Without: over all axes but the first, output N x 1 x top_k (as many axes as the input, at least 3);
// out_max_val gives N x 2 x top_k, indices then values.
class ArgMax : public LayerOf<ArgMaxOptions> {
 public:
  explicit ArgMax(ArgMaxOptions options);
  std::string_view type() const override { return "ArgMax"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  bool differentiable(int) const override { return false; }
  OutputRule output_rule(int) const override { return OutputRule::f32; }
};

}  // namespace cortado
