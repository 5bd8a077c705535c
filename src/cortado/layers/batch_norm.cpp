#include "cortado/layers/batch_norm.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/scale.h"

namespace cortado {

std::vector<Shape> BatchNorm::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 1, 1);
  check_count("outputs", outputs, 1, 1);
  if (inputs[0].rank() < 1) throw UserError("input is a scalar, needs a batch axis");
  if (options_.eps < 0) throw UserError(fmt::format("eps is {}, must not be negative", options_.eps));
  return {inputs[0]};
}

Box BatchNorm::input_box(std::span<const Shape>, int, int, const Box& output_box) const { return output_box; }

std::vector<ParameterSpec> BatchNorm::parameters(std::span<const Shape> inputs) const {
  Shape channels{inputs[0].rank() > 1 ? inputs[0][1] : 1};
  return {{"mean", channels, {}, false}, {"variance", channels, {}, false}, {"factor", {1}, {}, false}};
}

Box BatchNorm::parameter_box(std::span<const Shape> inputs, int parameter, const Box& domain_box,
                             const Box&) const {
  Box box = Box::whole(parameters(inputs)[parameter].shape);
  if (parameter < 2 && inputs[0].rank() > 1) box[0] = domain_box[1];
  return box;
}

Flops BatchNorm::forward_flops(std::span<const Shape>, std::span<const Shape> outputs) const {
  constexpr double per_element = 6;  // mean 1, variance 3, normalization 2
  return {per_element * outputs[0].size()};
}

bool BatchNorm::may_fuse_with(const Layer& next) const {
  return dynamic_cast<const Scale*>(&next) || activation_of(next);
}

}  // namespace cortado
