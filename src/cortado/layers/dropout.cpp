#include "cortado/layers/dropout.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

Dropout::Dropout(DropoutOptions options) : LayerOf(options) {
  if (!(options.ratio >= 0 && options.ratio <= 1)) {
    throw UserError(fmt::format("dropout_ratio is {}, must be in [0, 1]", options.ratio));
  }
}

std::vector<Shape> Dropout::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 1, 1);
  check_count("outputs", outputs, 1, 1);
  return {inputs[0]};
}

Box Dropout::input_box(std::span<const Shape>, int, int, const Box& output_box) const { return output_box; }

}  // namespace cortado
