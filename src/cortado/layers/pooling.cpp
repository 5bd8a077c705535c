#include "cortado/layers/pooling.h"

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

std::vector<Shape> Pooling::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 1, 1);
  check_count("outputs", outputs, 1, options_.method == PoolingOptions::Method::max ? 2 : 1);
  const Shape& input = inputs[0];
  check_spatial(input);
  Window window = options_.resolve(input);
  Shape output{input[0], input[1]};
  for (size_t i = 0; i < window.size(); ++i) {
    output.append(window_count(input[i + 2], window[i], options_.rounding));
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
