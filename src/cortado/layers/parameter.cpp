#include "cortado/layers/parameter.h"

namespace cortado {

std::vector<Shape> Parameter::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 0, 0);
  check_count("output", outputs, 1, 1);
  return {options_.shape};
}

std::vector<ParameterSpec> Parameter::parameters(std::span<const Shape>) const {
  return {{"weight", options_.shape, Filler{}}};
}

}  // namespace cortado
