#include "cortado/layers/bias.h"

namespace cortado {

std::vector<Shape> Bias::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("outputs", outputs, 1, 1);
  options_.broadcast.operand(inputs);
  return {inputs[0]};
}

Box Bias::input_box(std::span<const Shape> inputs, int input, int, const Box& output_box) const {
  return input == 0 ? output_box : options_.broadcast.operand_box(inputs, output_box);
}

std::vector<ParameterSpec> Bias::parameters(std::span<const Shape> inputs) const {
  if (inputs.size() == 2) return {};
  return {{"bias", options_.broadcast.operand(inputs), options_.filler}};
}

Box Bias::parameter_box(std::span<const Shape> inputs, int, const Box& domain_box, const Box&) const {
  return options_.broadcast.operand_box(inputs, domain_box);
}

}  // namespace cortado
