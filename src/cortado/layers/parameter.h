#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

struct ParameterOptions {
  Shape shape;
  static constexpr auto fields = std::tuple{field("shape", &ParameterOptions::shape)};
};

// Its one parameter as output, for layers that read it as they read other tensors. No inputs. The parameter
// begins with zeros, as Caffe's.
class Parameter : public LayerOf<ParameterOptions> {
 public:
  using LayerOf::LayerOf;
  std::string_view type() const override { return "Parameter"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape>, std::span<const Shape>) const override { return {}; }
};

}  // namespace cortado
