#include "cortado/layers/embed.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"

namespace cortado {

Embed::Embed(EmbedOptions options) : LayerOf(std::move(options)) {
  if (options_.num_output < 1)
    throw UserError(fmt::format("num_output must be positive, is {}", options_.num_output));
  if (options_.input_dim < 1)
    throw UserError(fmt::format("input_dim must be positive, is {}", options_.input_dim));
}

std::vector<Shape> Embed::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("input", inputs.size(), 1, 1);
  check_count("output", outputs, 1, 1);
  Shape output = inputs[0];
  output.append(options_.num_output);
  return {output};
}

Box Embed::input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const {
  return box_of_leading_axes(inputs[0], output_box, inputs[0].rank());
}

// Axis 0 of the output is n, even where it is that of the embedding alone.
Cuts Embed::cuts(std::span<const Shape> inputs) const { return cuts_outside(inputs[0].rank() + 1, 0, 0); }

std::vector<ParameterSpec> Embed::parameters(std::span<const Shape>) const {
  std::vector<ParameterSpec> specs;
  specs.push_back({"weight", Shape{options_.input_dim, options_.num_output}, options_.weight_filler});
  if (options_.bias_term) specs.push_back({"bias", Shape{options_.num_output}, options_.bias_filler});
  return specs;
}

Box Embed::parameter_box(std::span<const Shape> inputs, int parameter, const Box& domain_box,
                         const Box&) const {
  Box box = Box::whole(parameters(inputs)[parameter].shape);
  box[parameter == 0 ? 1 : 0] = domain_box[inputs[0].rank()];
  return box;
}

}  // namespace cortado
