#include "cortado/layers/convolution.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/pointwise.h"

namespace cortado {

Window ConvolutionOptions::resolve(int rank) const {
  int axes = rank - 2;
  auto kernels = per_axis("kernel size", kernel, axes, -1, 1);
  auto strides = per_axis("stride", stride, axes, 1, 1);
  auto pads = per_axis("pad", pad, axes, 0, 0);
  auto dilations = per_axis("dilation", dilation, axes, 1, 1);
  Window window;
  window.reserve(static_cast<size_t>(std::max(axes, 0)));
  for (int i = 0; i < axes; ++i) window.push_back({kernels[i], strides[i], pads[i], dilations[i]});
  return window;
}

void check_convolution(const ConvolutionOptions& options, std::span<const Shape> inputs, int outputs) {
  check_count("inputs", inputs.size(), 1, 1);
  check_count("outputs", outputs, 1, 1);
  const Shape& input = inputs[0];
  check_spatial(input);
  if (input.canonical_axis(options.axis) != 1) {
    throw UserError(fmt::format("axis {} is not supported: the channels must be on axis 1", options.axis));
  }
  if (options.num_output < 1)
    throw UserError(fmt::format("num_output is {}, must be positive", options.num_output));
  if (options.group < 1) throw UserError(fmt::format("group is {}, must be positive", options.group));
  if (input[1] < 1 || input[1] % options.group != 0) {
    throw UserError(fmt::format("group {} does not divide the {} input channels", options.group, input[1]));
  }
  if (options.num_output % options.group != 0) {
    throw UserError(fmt::format("group {} does not divide num_output {}", options.group, options.num_output));
  }
}

Range group_inputs(Range outputs, int64_t input_channels, int64_t output_channels, int64_t group) {
  if (outputs.size() == 0) return {};
  int64_t outputs_each = output_channels / group, inputs_each = input_channels / group;
  return {outputs.begin / outputs_each * inputs_each, ((outputs.end - 1) / outputs_each + 1) * inputs_each};
}

int64_t groups_of_part(Range inputs, int64_t input_channels, Range outputs, int64_t output_channels,
                       int64_t group) {
  if (group == 1) return 1;
  if (inputs != group_inputs(outputs, input_channels, output_channels, group)) return 0;
  const int64_t groups = inputs.size() / (input_channels / group), outputs_each = output_channels / group;
  return groups == 1 || outputs.size() == groups * outputs_each ? groups : 0;
}

std::vector<Shape> Convolution::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_convolution(options_, inputs, outputs);
  Window window = options_.resolve(inputs[0].rank());
  Shape output{inputs[0][0], options_.num_output};
  for (size_t i = 0; i < window.size(); ++i) output.append(window_count(inputs[0][i + 2], window[i]));
  return {output};
}

Box Convolution::input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const {
  const Shape& input = inputs[0];
  Window window = options_.resolve(input.rank());
  Box box = output_box;
  box[1] = group_inputs(output_box[1], input[1], options_.num_output, options_.group);
  for (size_t i = 0; i < window.size(); ++i) {
    const int64_t windows = window_count(input[i + 2], window[i]);
    box[i + 2] = window_image(output_box[i + 2], windows, window[i], input[i + 2]);
  }
  return box;
}

Cuts Convolution::cuts(std::span<const Shape>) const {
  Cuts cuts = Cuts::pointwise();
  cuts.r = options_.group == 1;
  return cuts;
}

std::vector<ParameterSpec> Convolution::parameters(std::span<const Shape> inputs) const {
  Shape weight{options_.num_output, inputs[0][1] / options_.group};
  for (const WindowAxis& axis : options_.resolve(inputs[0].rank())) weight.append(axis.kernel);
  std::vector<ParameterSpec> specs{{"weight", weight, options_.weight_filler}};
  if (options_.bias_term) specs.push_back({"bias", {options_.num_output}, options_.bias_filler});
  return specs;
}

Box Convolution::parameter_box(std::span<const Shape> inputs, int parameter, const Box& domain_box,
                               const Box& input_box) const {
  Box box = Box::whole(parameters(inputs)[parameter].shape);
  box[0] = domain_box[1];
  if (parameter == 0 && options_.group == 1) box[1] = input_box[1];
  return box;
}

std::shared_ptr<const Layer> Convolution::without_bias() const {
  if (!options_.bias_term) return nullptr;
  ConvolutionOptions options = options_;
  options.bias_term = false;
  return std::make_shared<Convolution>(std::move(options));
}

Flops Convolution::forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const {
  double per_output = 2.0 * inputs[0][1] / options_.group;
  for (const WindowAxis& axis : options_.resolve(inputs[0].rank())) per_output *= axis.kernel;
  if (options_.bias_term) per_output += 1;
  return {per_output * outputs[0].size()};
}

bool Convolution::may_fuse_with(const Layer& next) const { return is_relu(next); }

}  // namespace cortado
