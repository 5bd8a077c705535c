#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/im2col.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/resampling.h"
#include "cortado/layers/spp.h"
#include "cortado/net/caffe/conversions.h"
#include "cortado/net/caffe/options.h"

namespace cortado::from_caffe {
namespace {

// One option of a window: given per axis (`values`) or as its _h and _w pair, not both.
struct PairOption {
  std::string_view name;
  std::vector<int64_t> values;
  bool has_h, has_w;
  uint32_t h, w;
};

std::vector<int64_t> resolve(const PairOption& option, bool needs_both) {
  if (!option.has_h && !option.has_w) return option.values;
  if (!option.values.empty()) {
    throw UserError(fmt::format("{0} is given beside {0}_h or {0}_w; give one or the other", option.name));
  }
  if (needs_both && option.has_h != option.has_w) {
    throw UserError(fmt::format("{0}_h and {0}_w must be given together", option.name));
  }
  return {window_value(option.name, option.h), window_value(option.name, option.w)};
}

// The fields that Convolution and Im2col have.
template <typename Options>
void set_window(const caffe::ConvolutionParameter& p, Options& options) {
  options.kernel = resolve({"kernel_size", window_values("kernel_size", p.kernel_size()), p.has_kernel_h(),
                            p.has_kernel_w(), p.kernel_h(), p.kernel_w()},
                           true);
  options.stride = resolve({"stride", window_values("stride", p.stride()), p.has_stride_h(), p.has_stride_w(),
                            p.stride_h(), p.stride_w()},
                           true);
  options.pad = resolve(
      {"pad", window_values("pad", p.pad()), p.has_pad_h(), p.has_pad_w(), p.pad_h(), p.pad_w()}, false);
  options.dilation = window_values("dilation", p.dilation());
  options.axis = p.axis();
}

ConvolutionOptions convolution_options(const caffe::ConvolutionParameter& p) {
  ConvolutionOptions options;
  options.num_output = to_positive("num_output", p.num_output());
  options.bias_term = p.bias_term();
  options.group = to_positive("group", p.group());
  set_window(p, options);
  options.weight_filler = filler(p.weight_filler());
  options.bias_filler = filler(p.bias_filler());
  return options;
}

std::vector<int64_t> single(std::string_view name, bool given, uint32_t value) {
  return given ? std::vector<int64_t>{window_value(name, value)} : std::vector<int64_t>{};
}

// Cortado's per-axis field overrules Caffe's fields, which then must not be given.
std::vector<int64_t> pooling_option(const PairOption& option, std::string_view nd_name,
                                    const google::protobuf::RepeatedField<uint32_t>& nd, bool needs_both) {
  std::vector<int64_t> values = resolve(option, needs_both);
  if (nd.empty()) return values;
  if (!values.empty()) {
    throw UserError(fmt::format("{} is given beside {}; give one or the other", nd_name, option.name));
  }
  return window_values(nd_name, nd);
}

PoolingOptions::Method pooling_method(caffe::PoolingParameter::PoolMethod method) {
  switch (method) {
    case caffe::PoolingParameter::MAX:
      return PoolingOptions::Method::max;
    case caffe::PoolingParameter::AVE:
      return PoolingOptions::Method::average;
    case caffe::PoolingParameter::STOCHASTIC:
      return PoolingOptions::Method::stochastic;
  }
  throw InternalError("unknown pooling method");
}

LayerPtr convolution(const caffe::LayerParameter& layer) {
  return std::make_shared<Convolution>(convolution_options(layer.convolution_param()));
}

LayerPtr deconvolution(const caffe::LayerParameter& layer) {
  return std::make_shared<Deconvolution>(convolution_options(layer.convolution_param()));
}

LayerPtr im2col(const caffe::LayerParameter& layer) {
  Im2colOptions options;
  set_window(layer.convolution_param(), options);
  return std::make_shared<Im2col>(std::move(options));
}

LayerPtr pooling(const caffe::LayerParameter& layer) {
  const caffe::PoolingParameter& p = layer.pooling_param();
  PoolingOptions options;
  options.method = pooling_method(p.pool());
  options.global_pooling = p.global_pooling();
  options.rounding = p.round_mode() == caffe::PoolingParameter::CEIL ? Rounding::up : Rounding::down;
  options.kernel = pooling_option({"kernel_size", single("kernel_size", p.has_kernel_size(), p.kernel_size()),
                                   p.has_kernel_h(), p.has_kernel_w(), p.kernel_h(), p.kernel_w()},
                                  "kernel_nd", p.kernel_nd(), true);
  options.stride = pooling_option({"stride", single("stride", p.has_stride(), p.stride()), p.has_stride_h(),
                                   p.has_stride_w(), p.stride_h(), p.stride_w()},
                                  "stride_nd", p.stride_nd(), true);
  options.pad = pooling_option(
      {"pad", single("pad", p.has_pad(), p.pad()), p.has_pad_h(), p.has_pad_w(), p.pad_h(), p.pad_w()},
      "pad_nd", p.pad_nd(), false);
  return std::make_shared<Pooling>(std::move(options));
}

LayerPtr spp(const caffe::LayerParameter& layer) {
  const caffe::SPPParameter& p = layer.spp_param();
  if (p.pool() == caffe::SPPParameter::STOCHASTIC)
    throw UserError("SPP with stochastic pooling is not supported; use pool: MAX or AVE");
  SppOptions options;
  options.pyramid_height = to_positive("pyramid_height", p.pyramid_height());
  if (p.pool() == caffe::SPPParameter::AVE) options.method = SppOptions::Method::average;
  return std::make_shared<Spp>(options);
}

LayerPtr upsample(const caffe::LayerParameter& layer) {
  const caffe::UpsampleParameter& p = layer.upsample_param();
  UpsampleOptions options;
  options.scale = window_value("scale", static_cast<uint32_t>(to_positive("scale", p.scale())));
  if (p.mode() == caffe::UpsampleParameter::BILINEAR) options.mode = UpsampleOptions::Mode::linear;
  return std::make_shared<Resampling>(options);
}

LayerPtr interp(const caffe::LayerParameter& layer) {
  const caffe::InterpParameter& p = layer.interp_param();
  const auto given = [](bool has, const char* name, int32_t value) -> int64_t {
    if (has && value < 1) throw UserError(fmt::format("{} is {}, must be positive", name, value));
    return has ? window_value(name, static_cast<uint32_t>(value)) : 0;
  };
  InterpOptions options;
  options.height = given(p.has_height(), "height", p.height());
  options.width = given(p.has_width(), "width", p.width());
  options.zoom_factor = given(p.has_zoom_factor(), "zoom_factor", p.zoom_factor());
  options.shrink_factor = given(p.has_shrink_factor(), "shrink_factor", p.shrink_factor());
  options.pad_begin = p.pad_beg();
  options.pad_end = p.pad_end();
  return std::make_shared<Resampling>(options);
}

}  // namespace

std::span<const LayerType> window_types() {
  static constexpr LayerType types[] = {
      {"Convolution", convolution},
      {"Deconvolution", deconvolution},
      {"Im2col", im2col},
      {"Pooling", pooling},
      {"SPP", spp},
      {"Upsample", upsample},
      {"Interp", interp},
  };
  return types;
}

}  // namespace cortado::from_caffe
