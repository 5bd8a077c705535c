#include "cortado/layers/deconvolution.h"

namespace cortado {

std::vector<Shape> Deconvolution::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_convolution(options_, inputs, outputs);
  Window window = options_.resolve(inputs[0].rank());
  Shape output{inputs[0][0], options_.num_output};
  for (size_t i = 0; i < window.size(); ++i) output.append(spread_extent(inputs[0][i + 2], window[i]));
  return {output};
}

Box Deconvolution::input_box(std::span<const Shape> inputs, int, int, const Box& output_box) const {
  const Shape& input = inputs[0];
  Window window = options_.resolve(input.rank());
  Box box = output_box;
  box[1] = group_inputs(output_box[1], input[1], options_.num_output, options_.group);
  for (size_t i = 0; i < window.size(); ++i) {
    box[i + 2] = spread_reads(output_box[i + 2], window[i], input[i + 2]);
  }
  return box;
}

Cuts Deconvolution::cuts(std::span<const Shape>) const {
  Cuts cuts = Cuts::pointwise();
  cuts.r = options_.group == 1;
  // A cut inside a group would leave the weight's slices of its parts overlapping.
  cuts.c = options_.group == 1 || options_.group == options_.num_output;
  return cuts;
}

std::vector<ParameterSpec> Deconvolution::parameters(std::span<const Shape> inputs) const {
  Shape weight{inputs[0][1], options_.num_output / options_.group};
  for (const WindowAxis& axis : options_.resolve(inputs[0].rank())) weight.append(axis.kernel);
  std::vector<ParameterSpec> specs{{"weight", weight, options_.weight_filler}};
  if (options_.bias_term) specs.push_back({"bias", {options_.num_output}, options_.bias_filler});
  return specs;
}

Box Deconvolution::parameter_box(std::span<const Shape> inputs, int parameter, const Box& domain_box,
                                 const Box& input_box) const {
  Box box = Box::whole(parameters(inputs)[parameter].shape);
  if (parameter == 1) {
    box[0] = domain_box[1];
  } else {
    box[0] = input_box[1];
    if (options_.group == 1) box[1] = domain_box[1];
  }
  return box;
}

std::shared_ptr<const Layer> Deconvolution::without_bias() const {
  if (!options_.bias_term) return nullptr;
  ConvolutionOptions options = options_;
  options.bias_term = false;
  return std::make_shared<Deconvolution>(std::move(options));
}

Flops Deconvolution::forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const {
  double per_input = 2.0 * options_.num_output / options_.group;
  for (const WindowAxis& axis : options_.resolve(inputs[0].rank())) per_input *= axis.kernel;
  double bias = options_.bias_term ? outputs[0].size() : 0;
  return {per_input * inputs[0].size() + bias};
}

const ConvolutionOptions* convolution_options(const Layer& layer) {
  if (const auto* convolution = dynamic_cast<const Convolution*>(&layer)) return &convolution->options();
  const auto* deconvolution = dynamic_cast<const Deconvolution*>(&layer);
  return deconvolution ? &deconvolution->options() : nullptr;
}

}  // namespace cortado
