#include "cortado/layers/pooling.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

Window PoolingOptions::resolve(const Shape& input) const {
  int axes = input.rank() - 2;
  auto strides = per_axis("stride", stride, axes, 1, 1);
  auto pads = per_axis("pad", pad, axes, 0, 0);
  Window window;
  if (global_pooling) {
    if (!kernel.empty()) throw UserError("global_pooling excludes a kernel size; remove one of them");
    for (int i = 0; i < axes; ++i) {
      if (strides[i] != 1 || pads[i] != 0) throw UserError("global_pooling needs stride 1 and pad 0");
      window.push_back({.kernel = input[i + 2]});
    }
    return window;
  }
  auto kernels = per_axis("kernel size", kernel, axes, -1, 1);
  for (int i = 0; i < axes; ++i) {
    if (pads[i] >= kernels[i]) {
      throw UserError(fmt::format("pad {} must be less than the kernel size {}", pads[i], kernels[i]));
    }
    if (method == Method::stochastic && pads[i] != 0) {
      throw UserError(fmt::format("stochastic pooling has no padding, pad is {}; set it to 0", pads[i]));
    }
    window.push_back({kernels[i], strides[i], pads[i], 1});
  }
  return window;
}

namespace {

// Caffe averages a window that starts at the image's end to 0 / 0.
void check_last_window(int64_t image, const WindowAxis& axis, int64_t windows,
                       PoolingOptions::Method method) {
  using Method = PoolingOptions::Method;
  const int64_t start = axis.first(windows - 1);
  const bool undefined = method == Method::average ? start == image : start >= image;
  if (method == Method::max || !undefined) return;
  throw UserError(fmt::format(
      "the last of {} windows (kernel {}, stride {}) starts at {}, outside an input of {}, where "
      "{} pooling has no value; use round_mode: FLOOR, or max pooling",
      windows, axis.kernel, axis.stride, start, image, method == Method::average ? "average" : "stochastic"));
}

}  // namespace

std::vector<Shape> Pooling::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 1, 1);
  check_count("outputs", outputs, 1, options_.method == PoolingOptions::Method::max ? 2 : 1);
  const Shape& input = inputs[0];
  check_spatial(input);
  Window window = options_.resolve(input);
  const bool padded = std::ranges::any_of(window, [](const WindowAxis& axis) { return axis.pad > 0; });
  const Rounding rounding =
      padded && options_.rounding == Rounding::up ? Rounding::up_inside : options_.rounding;
  Shape output{input[0], input[1]};
  for (size_t i = 0; i < window.size(); ++i) {
    const int64_t image = input[i + 2];
    output.append(window_count(image, window[i], rounding));
    check_last_window(image, window[i], output[i + 2], options_.method);
  }
  return std::vector<Shape>(outputs, output);
}

Box Pooling::input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const {
  Window window = options_.resolve(inputs[0]);
  Box box = output_box;
  for (size_t i = 0; i < window.size(); ++i) {
    box[i + 2] = window_reads(output_box[i + 2], window[i], inputs[0][i + 2]);
  }
  return box;
}

Flops Pooling::forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const {
  double per_output = 1;
  for (const WindowAxis& axis : options_.resolve(inputs[0])) per_output *= axis.kernel;
  return {per_output * outputs[0].size()};
}

}  // namespace cortado
