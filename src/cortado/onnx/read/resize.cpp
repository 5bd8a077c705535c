#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/onnx/read/operators.h"

namespace cortado::onnx {
namespace {

// By how much each spatial axis grows. Throws unless by whole factors.
std::vector<int64_t> growth_of(const Node& node, const Shape& shape) {
  std::vector<double> factors;
  if (node.has(2) && node.constant(2).size() > 0) {
    for (int64_t i = 0; i < node.constant(2).size(); ++i) factors.push_back(node.constant(2).number(i));
  } else {
    const std::vector<int64_t> sizes = node.integers(3);
    if (static_cast<int>(sizes.size()) != shape.rank())
      throw UserError("sizes must have a value for each axis");
    for (int axis = 0; axis < shape.rank(); ++axis)
      factors.push_back(static_cast<double>(sizes[static_cast<size_t>(axis)]) /
                        static_cast<double>(std::max<int64_t>(1, shape[axis])));
  }
  if (static_cast<int>(factors.size()) != shape.rank())
    throw UserError("scales must have a value for each axis");
  std::vector<int64_t> growth;
  for (size_t axis = 0; axis < factors.size(); ++axis) {
    constexpr double most = 1024;
    const double factor = factors[axis];
    if (!(factor >= 1 && factor <= most) || factor != std::floor(factor) || (axis < 2 && factor != 1))
      throw UserError(
          fmt::format("it resizes axis {} by {:g}; only whole factors up to {:g} of spatial axes are read",
                      axis, factor, most));
    if (axis >= 2) growth.push_back(static_cast<int64_t>(factor));
  }
  return growth;
}

// Whether position i of the output is position i / factor of the input, as a deconvolution by ones has it.
bool repeats_each(const std::string& coordinates, const std::string& rounding, int64_t factor) {
  for (int64_t i = 0; i < 2 * factor; ++i) {
    const auto f = static_cast<double>(factor), x = static_cast<double>(i);
    double at;
    if (coordinates == "asymmetric") {
      at = x / f;
    } else if (coordinates == "half_pixel" || coordinates == "pytorch_half_pixel") {
      at = (x + 0.5) / f - 0.5;
    } else {
      return false;
    }
    const double nearest = rounding == "floor"                ? std::floor(at)
                           : rounding == "ceil"               ? std::ceil(at)
                           : rounding == "round_prefer_floor" ? std::ceil(at - 0.5)
                           : rounding == "round_prefer_ceil"  ? std::floor(at + 0.5)
                                                              : -1e9;
    if (std::max(0.0, nearest) != std::floor(x / f)) return false;
  }
  return true;
}

// One factor for all axes; 0: they differ.
int64_t common_factor(const std::vector<int64_t>& growth) {
  return std::ranges::all_of(growth, [&](int64_t factor) { return factor == growth[0]; }) ? growth[0] : 0;
}

Value upsampled(Node& node, const Value& input, int64_t factor, caffe::UpsampleParameter::Mode mode) {
  caffe::LayerParameter layer = layer_of_type("Upsample");
  layer.mutable_upsample_param()->set_scale(static_cast<uint32_t>(factor));
  if (mode != caffe::UpsampleParameter::NEAREST) layer.mutable_upsample_param()->set_mode(mode);
  return node.layer(std::move(layer), input);
}

// An extent after resizing, by its size or its scale.
int64_t extent_of(const Node& node, const Shape& shape, int axis) {
  const bool scaled = node.has(2) && node.constant(2).size() > 0;
  const Constant& numbers = node.constant(scaled ? 2 : 3);
  if (numbers.size() != shape.rank())
    throw UserError(fmt::format("{} must have a value for each axis", scaled ? "scales" : "sizes"));
  if (!scaled) return node.integers(3)[static_cast<size_t>(axis)];
  const double extent = std::floor(numbers.number(axis) * static_cast<double>(shape[axis]));
  if (!(extent >= 1 && extent <= static_cast<double>(most_computed)))
    throw UserError(fmt::format("it resizes axis {} by {:g}", axis, numbers.number(axis)));
  return static_cast<int64_t>(extent);
}

// The first and last positions of both images meet. Images may shrink.
Value interpolated(Node& node, const Value& input) {
  if (input.shape.rank() != 4)
    throw UserError(
        fmt::format("its input is of shape {}; with align_corners only images of two spatial axes "
                    "are resized",
                    input.shape.text()));
  Shape output;
  for (int axis = 0; axis < 4; ++axis) output.append(extent_of(node, input.shape, axis));
  if (output[0] != input.shape[0] || output[1] != input.shape[1])
    throw UserError(
        fmt::format("it resizes {} to {}; only spatial axes are resized", input.shape.text(), output.text()));
  check_extents(output, most_computed);
  if (output == input.shape) return input;
  caffe::LayerParameter layer = layer_of_type("Interp");
  layer.mutable_interp_param()->set_height(static_cast<int>(window_option("height", output[2], 1)));
  layer.mutable_interp_param()->set_width(static_cast<int>(window_option("width", output[3], 1)));
  return node.layer(std::move(layer), input);
}

caffe::LayerParameter spreading_layer(int64_t channels, const std::vector<int64_t>& kernel,
                                      const std::vector<int64_t>& stride, const std::vector<int64_t>& pad) {
  caffe::LayerParameter layer = layer_of_type("Deconvolution");
  caffe::ConvolutionParameter& options = *layer.mutable_convolution_param();
  options.set_num_output(static_cast<uint32_t>(channels));
  options.set_group(static_cast<uint32_t>(channels));
  options.set_bias_term(false);
  for (size_t i = 0; i < kernel.size(); ++i) {
    options.add_kernel_size(static_cast<uint32_t>(kernel[i]));
    options.add_stride(static_cast<uint32_t>(stride[i]));
    options.add_pad(static_cast<uint32_t>(pad[i]));
  }
  freeze(layer, 1);
  return layer;
}

// The outer product of the vectors, `copies` times one after the other.
std::vector<float> outer(const std::vector<std::vector<float>>& vectors, int64_t copies) {
  std::vector<float> product{1};
  for (const std::vector<float>& vector : vectors) {
    std::vector<float> next;
    for (const float a : product)
      for (const float b : vector) next.push_back(a * b);
    product = std::move(next);
  }
  std::vector<float> result;
  for (int64_t i = 0; i < copies; ++i) result.insert(result.end(), product.begin(), product.end());
  return result;
}

Shape kernel_shape(int64_t channels, const std::vector<int64_t>& kernel) {
  Shape shape{channels, 1};
  for (const int64_t extent : kernel) shape.append(extent);
  return shape;
}

Value nearest(Node& node, const Value& input, const std::vector<int64_t>& growth) {
  if (const int64_t factor = common_factor(growth))
    return upsampled(node, input, factor, caffe::UpsampleParameter::NEAREST);
  const int64_t channels = input.shape[1];
  caffe::LayerParameter layer =
      spreading_layer(channels, growth, growth, std::vector<int64_t>(growth.size(), 0));
  layer.mutable_convolution_param()->mutable_weight_filler()->set_value(1);
  const Shape shape = kernel_shape(channels, growth);
  return node.layer(std::move(layer), input,
                    {{shape, std::vector<float>(static_cast<size_t>(shape.size()), 1)}});
}

// Caffe's bilinear kernel for a factor.
std::vector<float> tent(int64_t factor) {
  const int64_t size = 2 * factor - factor % 2;
  std::vector<float> values;
  for (int64_t i = 0; i < size; ++i) {
    const double centre = static_cast<double>(size - 1) / 2;
    values.push_back(
        static_cast<float>(1 - std::abs(static_cast<double>(i) - centre) / static_cast<double>(factor)));
  }
  return values;
}

// Sums of the taps that lie in the image, per position of the output: less than 1 at its ends, where ONNX
// repeats the last value.
std::vector<float> inverse_cover(int64_t image, int64_t factor) {
  const std::vector<float> taps = tent(factor);
  const int64_t pad = (static_cast<int64_t>(taps.size()) - factor) / 2;
  std::vector<float> cover(static_cast<size_t>(image * factor), 0);
  for (int64_t p = 0; p < image; ++p)
    for (size_t k = 0; k < taps.size(); ++k) {
      const int64_t at = p * factor - pad + static_cast<int64_t>(k);
      if (at >= 0 && at < image * factor) cover[static_cast<size_t>(at)] += taps[k];
    }
  for (float& value : cover) value = 1 / value;
  return cover;
}

Value linear(Node& node, const Value& input, const std::vector<int64_t>& growth) {
  if (const int64_t factor = common_factor(growth))
    return upsampled(node, input, factor, caffe::UpsampleParameter::BILINEAR);
  const int64_t channels = input.shape[1];
  std::vector<int64_t> kernel, pad;
  std::vector<std::vector<float>> taps, covers;
  Shape image;
  for (size_t i = 0; i < growth.size(); ++i) {
    taps.push_back(tent(growth[i]));
    covers.push_back(inverse_cover(input.shape[static_cast<int>(i) + 2], growth[i]));
    kernel.push_back(static_cast<int64_t>(taps.back().size()));
    pad.push_back((kernel.back() - growth[i]) / 2);
    image.append(input.shape[static_cast<int>(i) + 2] * growth[i]);
  }
  const Value spread = node.layer(spreading_layer(channels, kernel, growth, pad), input,
                                  {{kernel_shape(channels, kernel), outer(taps, channels)}}, "/spread");
  caffe::LayerParameter scale = layer_of_type("Scale");
  scale.mutable_scale_param()->set_axis(2);
  scale.mutable_scale_param()->set_num_axes(-1);
  freeze(scale, 1);
  return node.layer(std::move(scale), spread, {{image, outer(covers, 1)}});
}

// The tables that a layer gets must be of a size that any memory has.
void check_growth(const Value& input, const std::vector<int64_t>& growth) {
  Shape image, taps{input.shape[1]};
  for (size_t i = 0; i < growth.size(); ++i) {
    image.append(input.shape[static_cast<int>(i) + 2] * growth[i]);
    taps.append(2 * growth[i]);
  }
  check_extents(image, most_computed);
  check_extents(taps, most_computed);
}

void read_resize(Node& node) {
  node.check_inputs(1, 4);
  const Value& input = node.activation(0);
  if (!input.pads.empty()) node.net().blob_of(input);  // refuses it
  if (input.shape.rank() < 3 || input.shape.rank() > 5)
    throw UserError(
        fmt::format("its input is of shape {}; it must have one to three spatial axes", input.shape.text()));
  const std::string mode = node.attributes.text("mode", "nearest");
  const std::string coordinates = node.attributes.text("coordinate_transformation_mode", "half_pixel");
  const std::string rounding = node.attributes.text("nearest_mode", "round_prefer_floor");
  for (const char* name : {"cubic_coeff_a", "exclude_outside", "extrapolation_value"})
    node.attributes.pass_over(name);
  const std::string policy = node.attributes.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch")
    throw UserError(fmt::format("keep_aspect_ratio_policy is '{}'; only stretch is read", policy));
  if (node.attributes.has("axes")) throw UserError("axes is given; export with a factor for each axis");
  if (node.attributes.integer("antialias", 0) != 0)
    node.notice("antialias changes nothing where images grow");
  if (mode == "linear" && coordinates == "align_corners") return node.give(interpolated(node, input));
  const std::vector<int64_t> growth = growth_of(node, input.shape);
  check_growth(input, growth);
  if (std::ranges::all_of(growth, [](int64_t factor) { return factor == 1; })) return node.give(input);
  const bool half = coordinates == "half_pixel" || coordinates == "pytorch_half_pixel";
  if (mode == "nearest" && std::ranges::all_of(growth, [&](int64_t factor) {
        return repeats_each(coordinates, rounding, factor);
      }))
    return node.give(nearest(node, input, growth));
  if (mode == "linear" && half) return node.give(linear(node, input, growth));
  throw UserError(
      fmt::format("mode {}, coordinate_transformation_mode {}, nearest_mode {}: no layer computes it; use "
                  "nearest with asymmetric and floor, or linear with half_pixel (align_corners=False)",
                  mode, coordinates, rounding));
}

}  // namespace

std::span<const Operator> resize_operators() {
  static constexpr Operator operators[] = {
      {"Resize", read_resize},
      {"GridSample", nullptr, "its positions are values of the graph"},
      {"AffineGrid", nullptr, "its positions are values of the graph"},
  };
  return operators;
}

}  // namespace cortado::onnx
