#include "cortado/layers/prelu.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

std::vector<Shape> PRelu::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 1, 1);
  check_count("outputs", outputs, 1, 1);
  if (inputs[0].rank() < 2) {
    throw UserError(fmt::format("input of shape {} has no channel axis", inputs[0].text()));
  }
  return {inputs[0]};
}

Box PRelu::input_box(std::span<const Shape>, int, int, const Box& output_box) const { return output_box; }

std::vector<ParameterSpec> PRelu::parameters(std::span<const Shape> inputs) const {
  return {{"slope", options_.channel_shared ? Shape{} : Shape{inputs[0][1]}, options_.filler}};
}

Box PRelu::parameter_box(std::span<const Shape> inputs, int parameter, const Box& domain_box,
                         const Box&) const {
  Box box = Box::whole(parameters(inputs)[parameter].shape);
  if (!options_.channel_shared) box[0] = domain_box[1];
  return box;
}

}  // namespace cortado
