#include "cortado/layers/inner_product.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/pointwise.h"

namespace cortado {

std::vector<Shape> InnerProduct::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 1, 1);
  check_count("outputs", outputs, 1, 1);
  if (options_.num_output < 1)
    throw UserError(fmt::format("num_output is {}, must be positive", options_.num_output));
  int axis = inputs[0].canonical_axis(options_.axis);
  if (inputs[0].count(axis) == 0)
    throw UserError(fmt::format("input of shape {} is empty", inputs[0].text()));
  Shape output;
  for (int i = 0; i < axis; ++i) output.append(inputs[0][i]);
  output.append(options_.num_output);
  return {output};
}

Box InnerProduct::input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const {
  Box box = Box::whole(inputs[0]);
  int axis = inputs[0].canonical_axis(options_.axis);
  for (int i = 0; i < axis; ++i) box[i] = output_box[i];
  return box;
}

Cuts InnerProduct::cuts(std::span<const Shape> inputs) const {
  int axis = inputs[0].canonical_axis(options_.axis);
  return {.n = axis > 0, .c = axis > 0, .r = axis == 1};
}

std::vector<ParameterSpec> InnerProduct::parameters(std::span<const Shape> inputs) const {
  int64_t summed = inputs[0].count(inputs[0].canonical_axis(options_.axis));
  Shape weight = options_.transpose ? Shape{summed, options_.num_output} : Shape{options_.num_output, summed};
  std::vector<ParameterSpec> specs{{"weight", weight, options_.weight_filler}};
  if (options_.bias_term) specs.push_back({"bias", {options_.num_output}, options_.bias_filler});
  return specs;
}

Box InnerProduct::parameter_box(std::span<const Shape> inputs, int parameter, const Box& domain_box,
                                const Box& input_box) const {
  int axis = inputs[0].canonical_axis(options_.axis);
  Box box = Box::whole(parameters(inputs)[parameter].shape);
  if (parameter == 1) {
    box[0] = domain_box[axis];
    return box;
  }
  // The summed axes are flattened, so that a range of the first of them is one range of all.
  int64_t each = inputs[0].count(axis + 1);
  box[options_.transpose ? 1 : 0] = domain_box[axis];
  box[options_.transpose ? 0 : 1] = {input_box[axis].begin * each, input_box[axis].end * each};
  return box;
}

std::shared_ptr<const Layer> InnerProduct::without_bias() const {
  if (!options_.bias_term) return nullptr;
  InnerProductOptions options = options_;
  options.bias_term = false;
  return std::make_shared<InnerProduct>(options);
}

Flops InnerProduct::forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const {
  double summed = inputs[0].count(inputs[0].canonical_axis(options_.axis));
  return {(2 * summed + (options_.bias_term ? 1 : 0)) * outputs[0].size()};
}

bool InnerProduct::may_fuse_with(const Layer& next) const { return is_relu(next); }

}  // namespace cortado
