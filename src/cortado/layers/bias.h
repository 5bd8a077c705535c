#pragma once

#include "cortado/layers/broadcast.h"

namespace cortado {

struct BiasOptions {
  Broadcast broadcast;
  Filler filler;
  bool operator==(const BiasOptions&) const = default;
};

// y = x + bias, bias broadcast over x. The bias is the second input, or with one input a parameter.
class Bias : public Layer {
 public:
  explicit Bias(BiasOptions options) : options_(options) {}
  const BiasOptions& options() const { return options_; }

  std::string_view type() const override { return "Bias"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape>) const override { return Cuts::pointwise(); }
  std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const override;
  Box parameter_box(std::span<const Shape> inputs, int parameter, const Box& domain_box,
                    const Box& input_box) const override;

 private:
  BiasOptions options_;
};

}  // namespace cortado
