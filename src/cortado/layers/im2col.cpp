#include "cortado/layers/im2col.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/convolution.h"

namespace cortado {
namespace {

int64_t elements(const Window& window) {
  int64_t count = 1;
  for (const WindowAxis& axis : window) count *= axis.kernel;
  return count;
}

}  // namespace

Window Im2col::window(int rank) const {
  return ConvolutionOptions{.kernel = options_.kernel,
                            .stride = options_.stride,
                            .pad = options_.pad,
                            .dilation = options_.dilation}
      .resolve(rank);
}

std::vector<Shape> Im2col::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 1, 1);
  check_count("outputs", outputs, 1, 1);
  check_spatial(inputs[0]);
  if (inputs[0].canonical_axis(options_.axis) != 1)
    throw UserError(fmt::format("axis {} is not supported: the channels must be on axis 1", options_.axis));
  const Window axes = window(inputs[0].rank());
  Shape output{inputs[0][0], inputs[0][1] * elements(axes)};
  for (size_t i = 0; i < axes.size(); ++i) output.append(window_count(inputs[0][i + 2], axes[i]));
  return {output};
}

Box Im2col::input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const {
  const Window axes = window(inputs[0].rank());
  const int64_t count = elements(axes);
  Box box = output_box;
  box[1] = {output_box[1].begin / count, (output_box[1].end + count - 1) / count};
  for (size_t i = 0; i < axes.size(); ++i)
    box[i + 2] = window_reads(output_box[i + 2], axes[i], inputs[0][i + 2]);
  return box;
}

}  // namespace cortado
