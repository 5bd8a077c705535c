#include "cortado/layers/shuffle_channel.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

std::vector<Shape> ShuffleChannel::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 1, 1);
  check_count("outputs", outputs, 1, 1);
  const int64_t channels = inputs[0][inputs[0].canonical_axis(1)];
  if (options_.group < 1 || channels % options_.group != 0)
    throw UserError(fmt::format("group {} does not divide the {} channels", options_.group, channels));
  return {inputs[0]};
}

}  // namespace cortado
