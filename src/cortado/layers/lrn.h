#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

struct LrnOptions {
  enum class Region { across_channels, within_channel };
  int64_t local_size = 5;  // odd
  double alpha = 1, beta = 0.75;
  double k = 1;  // across channels only; within a channel it is 1
  Region region = Region::across_channels;
  static constexpr auto fields = std::tuple{
      field("local_size", &LrnOptions::local_size), field("alpha", &LrnOptions::alpha),
      field("beta", &LrnOptions::beta), field("k", &LrnOptions::k), field("region", &LrnOptions::region)};
};

// Local response normalization: y = x * s^-beta.
//   across channels  s[c] = k + alpha/local_size * sum over |j-c| <= local_size/2 of x[j]^2
//   within channel   s[p] = 1 + alpha * average of x^2 over the local_size^axes window around p, zeros
//                    outside the image counted
class Lrn : public LayerOf<LrnOptions> {
 public:
  using LayerOf::LayerOf;

  std::string_view type() const override { return "LRN"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
};

}  // namespace cortado
