#include "cortado/layers/hdf5_output.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

Hdf5Output::Hdf5Output(Hdf5OutputOptions options) : LayerOf(std::move(options)) {
  if (options_.file_name.empty()) throw UserError("needs hdf5_output_param { file_name: \"...\" }");
}

std::vector<Shape> Hdf5Output::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 2, 2);
  check_count("outputs", outputs, 0, 0);
  for (const Shape& shape : inputs) {
    if (shape.rank() == 0 || shape[0] != inputs[0][0]) {
      throw UserError(fmt::format("needs data and labels of equally many samples, has {} and {}",
                                  inputs[0].text(), inputs[1].text()));
    }
  }
  return {};
}

}  // namespace cortado
