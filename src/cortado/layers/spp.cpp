#include "cortado/layers/spp.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"

namespace cortado {

Window Spp::window(const Shape& input, int64_t level) const {
  const int64_t windows = int64_t{1} << level;
  Window window;
  for (int axis = 2; axis < input.rank(); ++axis) {
    const int64_t extent = input[axis], kernel = (extent + windows - 1) / windows;
    const int64_t pad = (kernel * windows - extent + 1) / 2;
    if (pad >= kernel)
      throw UserError(fmt::format(
          "level {} of the pyramid has {} windows along axis {} of {}, some in padding alone; use "
          "pyramid_height {}",
          level, windows, axis, input.text(), level));
    window.push_back({.kernel = kernel, .stride = kernel, .pad = pad});
  }
  return window;
}

std::vector<Shape> Spp::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 1, 1);
  check_count("outputs", outputs, 1, 1);
  check_spatial(inputs[0]);
  if (options_.pyramid_height < 1)
    throw UserError(fmt::format("pyramid_height is {}, must be positive", options_.pyramid_height));
  int64_t features = 0;
  for (int64_t level = 0; level < options_.pyramid_height; ++level) {
    window(inputs[0], level);
    features += inputs[0][1] << level * (inputs[0].rank() - 2);
  }
  return {{inputs[0][0], features}};
}

Box Spp::input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const {
  return box_of_leading_axes(inputs[0], output_box, 1);
}

Flops Spp::forward_flops(std::span<const Shape> inputs, std::span<const Shape>) const {
  return {static_cast<double>(options_.pyramid_height) * static_cast<double>(inputs[0].size())};
}

}  // namespace cortado
