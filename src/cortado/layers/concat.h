#pragma once

#include "cortado/layers/layer.h"

namespace cortado {

struct ConcatOptions {
  int axis = 1;
};

// Joins its inputs along `axis`; all other extents are equal.
class Concat : public Layer {
 public:
  explicit Concat(ConcatOptions options);
  const ConcatOptions& options() const { return options_; }
  std::string_view type() const override { return "Concat"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;

 private:
  ConcatOptions options_;
};

}  // namespace cortado
