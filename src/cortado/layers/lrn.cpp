#include "cortado/layers/lrn.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/window.h"

namespace cortado {

std::vector<Shape> Lrn::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 1, 1);
  check_count("outputs", outputs, 1, 1);
  if (options_.local_size < 1 || options_.local_size % 2 == 0) {
    throw UserError(fmt::format("local_size is {}, must be odd and positive", options_.local_size));
  }
  if (options_.region == LrnOptions::Region::within_channel) {
    check_spatial(inputs[0]);
  } else if (inputs[0].rank() < 2) {
    throw UserError(fmt::format("input of shape {} has no channel axis", inputs[0].text()));
  }
  return {inputs[0]};
}

Box Lrn::input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const {
  const Shape& input = inputs[0];
  WindowAxis region{.kernel = options_.local_size, .pad = options_.local_size / 2};
  Box box = output_box;
  if (options_.region == LrnOptions::Region::across_channels) {
    box[1] = window_reads(output_box[1], region, input[1]);
  } else {
    for (int i = 2; i < input.rank(); ++i) box[i] = window_reads(output_box[i], region, input[i]);
  }
  return box;
}

Cuts Lrn::cuts(std::span<const Shape>) const { return Cuts::pointwise(); }

Flops Lrn::forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const {
  bool across = options_.region == LrnOptions::Region::across_channels;
  double per_output = 2;  // power and product
  double region = 2;      // square and add
  for (int i = 0; i < (across ? 1 : inputs[0].rank() - 2); ++i) region *= options_.local_size;
  return {(per_output + region) * outputs[0].size()};
}

}  // namespace cortado
