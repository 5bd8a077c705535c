#include <algorithm>

#include "cortado/base/error.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/pooling.h"
#include "cortado/onnx/write/layers.h"

namespace cortado::onnx {
namespace {

// ONNX's names of a window's options.
struct WindowAttributes {
  std::vector<int64_t> kernel, stride, dilation, begin, end;

  explicit WindowAttributes(const Window& window) {
    for (const WindowAxis& axis : window) {
      kernel.push_back(axis.kernel);
      stride.push_back(axis.stride);
      dilation.push_back(axis.dilation);
      begin.push_back(axis.pad);
      end.push_back(axis.pad);
    }
  }
  std::vector<AttributeProto> list(bool dilated) const {
    std::vector<int64_t> pads = begin;
    pads.insert(pads.end(), end.begin(), end.end());
    std::vector<AttributeProto> attributes{attribute("kernel_shape", kernel), attribute("strides", stride),
                                           attribute("pads", pads)};
    if (dilated) attributes.push_back(attribute("dilations", dilation));
    return attributes;
  }
};

void write_products(WrittenLayer& layer, const ConvolutionOptions& options, const std::string& type) {
  std::vector<AttributeProto> attributes =
      WindowAttributes(options.resolve(layer.input_shape(0).rank())).list(true);
  attributes.push_back(attribute("group", options.group));
  std::vector<std::string> inputs{layer.input(0), layer.parameter(0)};
  if (options.bias_term) inputs.push_back(layer.parameter(1));
  layer.last(type, inputs, attributes);
}

void write_convolution(WrittenLayer& layer) {
  write_products(layer, layer.as<Convolution>().options(), "Conv");
}
void write_deconvolution(WrittenLayer& layer) {
  write_products(layer, layer.as<Deconvolution>().options(), "ConvTranspose");
}

// Pads after the image are such that there are as many windows as the layer has, without a rounding.
WindowAttributes pooling_attributes(const Window& window, const Shape& input, const Shape& output) {
  WindowAttributes attributes(window);
  for (size_t i = 0; i < window.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    const int64_t last = window[i].first(output[axis] - 1);
    if (last >= input[axis])
      throw UserError(
          "its last window starts after its input, for which ONNX has no rule; use round_mode: FLOOR");
    attributes.end[i] = std::max<int64_t>(0, last + window[i].kernel - input[axis]);
  }
  return attributes;
}

// What averages over the whole kernel must be multiplied by, where Caffe divides by a part of it; empty:
// nothing.
std::vector<float> part_factors(const Window& window, const Shape& input, const Shape& output) {
  std::vector<float> factors{1};
  bool any = false;
  for (size_t i = 0; i < window.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    std::vector<float> products;
    for (const float factor : factors) {
      for (int64_t w = 0; w < output[axis]; ++w) {
        const int64_t start = window[i].first(w);
        const int64_t part = std::min(start + window[i].kernel, input[axis] + window[i].pad) - start;
        any = any || part != window[i].kernel;
        products.push_back(factor * static_cast<float>(window[i].kernel) / static_cast<float>(part));
      }
    }
    factors = std::move(products);
  }
  return any ? factors : std::vector<float>{};
}

void write_average(WrittenLayer& layer, const Window& window) {
  const Shape &input = layer.input_shape(0), &output = layer.output_shape(0);
  std::vector<AttributeProto> attributes = pooling_attributes(window, input, output).list(false);
  attributes.push_back(attribute("count_include_pad", int64_t{1}));
  const std::vector<float> factors = part_factors(window, input, output);
  if (factors.empty()) return layer.last("AveragePool", {layer.input(0)}, attributes);
  const std::string averages = layer.step("AveragePool", {layer.input(0)}, attributes);
  const Shape space(output.extents().subspan(2));
  layer.last("Mul", {averages, layer.graph().floats(layer.name() + "/divisor", space, factors)});
}

void write_pooling(WrittenLayer& layer) {
  const PoolingOptions& options = layer.as<Pooling>().options();
  using Method = PoolingOptions::Method;
  if (options.method == Method::stochastic)
    throw UserError("stochastic pooling has no operator in ONNX; use pool: MAX or AVE");
  const bool mask_is_read = layer.outputs().size() > 1 && !layer.outputs()[1].empty();
  if (mask_is_read)
    throw UserError("its second top, the positions of the maxima, is counted otherwise in ONNX; remove it");
  const bool max = options.method == Method::max;
  if (options.global_pooling)
    return layer.last(max ? "GlobalMaxPool" : "GlobalAveragePool", {layer.input(0)});
  const Window window = options.resolve(layer.input_shape(0));
  if (!max) return write_average(layer, window);
  layer.last("MaxPool", {layer.input(0)},
             pooling_attributes(window, layer.input_shape(0), layer.output_shape(0)).list(false));
}

}  // namespace

std::span<const LayerWriter> window_writers() {
  static constexpr LayerWriter writers[] = {
      {"Convolution", write_convolution},
      {"Deconvolution", write_deconvolution},
      {"Pooling", write_pooling},
  };
  return writers;
}

}  // namespace cortado::onnx
