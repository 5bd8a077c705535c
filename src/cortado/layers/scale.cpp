#include "cortado/layers/scale.h"

#include "cortado/layers/pointwise.h"

namespace cortado {

std::vector<Shape> Scale::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("outputs", outputs, 1, 1);
  options_.broadcast.operand(inputs);
  return {inputs[0]};
}

Box Scale::input_box(std::span<const Shape> inputs, int input, int, const Box& output_box) const {
  return input == 0 ? output_box : options_.broadcast.operand_box(inputs, output_box);
}

std::vector<ParameterSpec> Scale::parameters(std::span<const Shape> inputs) const {
  Shape operand = options_.broadcast.operand(inputs);
  std::vector<ParameterSpec> specs;
  if (inputs.size() == 1) specs.push_back({"weight", operand, options_.filler});
  if (options_.bias_term) specs.push_back({"bias", operand, options_.bias_filler});
  return specs;
}

Box Scale::parameter_box(std::span<const Shape> inputs, int, const Box& domain_box, const Box&) const {
  return options_.broadcast.operand_box(inputs, domain_box);
}

Flops Scale::forward_flops(std::span<const Shape>, std::span<const Shape> outputs) const {
  return {(options_.bias_term ? 2.0 : 1.0) * outputs[0].size()};
}

bool Scale::may_fuse_with(const Layer& next) const { return activation_of(next).has_value(); }

}  // namespace cortado
