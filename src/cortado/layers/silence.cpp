#include "cortado/layers/silence.h"

namespace cortado {

std::vector<Shape> Silence::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 1, -1);
  check_count("outputs", outputs, 0, 0);
  return {};
}

}  // namespace cortado
