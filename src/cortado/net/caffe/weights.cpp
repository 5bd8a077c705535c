#include "cortado/base/error.h"
#include "cortado/layers/batch_norm.h"
#include "cortado/layers/bias.h"
#include "cortado/layers/embed.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/lrn.h"
#include "cortado/layers/mvn.h"
#include "cortado/layers/normalize.h"
#include "cortado/layers/parameter.h"
#include "cortado/layers/prelu.h"
#include "cortado/layers/recurrent.h"
#include "cortado/layers/scale.h"
#include "cortado/net/caffe/conversions.h"
#include "cortado/net/caffe/options.h"

namespace cortado::from_caffe {
namespace {

LayerPtr inner_product(const caffe::LayerParameter& layer) {
  const caffe::InnerProductParameter& p = layer.inner_product_param();
  InnerProductOptions options;
  options.num_output = to_positive("num_output", p.num_output());
  options.bias_term = p.bias_term();
  options.transpose = p.transpose();
  options.axis = p.axis();
  options.weight_filler = filler(p.weight_filler());
  options.bias_filler = filler(p.bias_filler());
  return std::make_shared<InnerProduct>(options);
}

LayerPtr embed(const caffe::LayerParameter& layer) {
  const caffe::EmbedParameter& p = layer.embed_param();
  EmbedOptions options;
  options.num_output = to_positive("num_output", p.num_output());
  options.input_dim = to_positive("input_dim", p.input_dim());
  options.bias_term = p.bias_term();
  options.weight_filler = filler(p.weight_filler());
  options.bias_filler = filler(p.bias_filler());
  return std::make_shared<Embed>(options);
}

LayerPtr batch_norm(const caffe::LayerParameter& layer) {
  const caffe::BatchNormParameter& p = layer.batch_norm_param();
  BatchNormOptions options;
  if (p.has_use_global_stats()) options.use_global_stats = p.use_global_stats();
  options.moving_average_fraction = p.moving_average_fraction();
  options.eps = p.eps();
  return std::make_shared<BatchNorm>(options);
}

LayerPtr scale(const caffe::LayerParameter& layer) {
  const caffe::ScaleParameter& p = layer.scale_param();
  ScaleOptions options;
  options.broadcast = {.axis = p.axis(), .num_axes = p.num_axes()};
  options.bias_term = p.bias_term();
  if (p.has_filler()) options.filler = filler(p.filler());
  options.bias_filler = filler(p.bias_filler());
  return std::make_shared<Scale>(options);
}

LayerPtr bias(const caffe::LayerParameter& layer) {
  const caffe::BiasParameter& p = layer.bias_param();
  BiasOptions options;
  options.broadcast = {.axis = p.axis(), .num_axes = p.num_axes()};
  options.filler = filler(p.filler());
  return std::make_shared<Bias>(options);
}

LayerPtr prelu(const caffe::LayerParameter& layer) {
  const caffe::PReLUParameter& p = layer.prelu_param();
  PReluOptions options;
  options.channel_shared = p.channel_shared();
  if (p.has_filler()) options.filler = filler(p.filler());
  return std::make_shared<PRelu>(options);
}

LayerPtr lrn(const caffe::LayerParameter& layer) {
  const caffe::LRNParameter& p = layer.lrn_param();
  LrnOptions options;
  options.local_size = window_value("local_size", p.local_size());
  options.alpha = p.alpha();
  options.beta = p.beta();
  options.k = p.k();
  options.region = p.norm_region() == caffe::LRNParameter::ACROSS_CHANNELS
                       ? LrnOptions::Region::across_channels
                       : LrnOptions::Region::within_channel;
  return std::make_shared<Lrn>(options);
}

LayerPtr mvn(const caffe::LayerParameter& layer) {
  const caffe::MVNParameter& p = layer.mvn_param();
  return std::make_shared<Mvn>(MvnOptions{
      .normalize_variance = p.normalize_variance(), .across_channels = p.across_channels(), .eps = p.eps()});
}

LayerPtr normalize(const caffe::LayerParameter& layer) {
  const caffe::NormalizeParameter& p = layer.norm_param();
  NormalizeOptions options;
  options.across_spatial = p.across_spatial();
  options.channel_shared = p.channel_shared();
  options.eps = p.eps();
  if (p.has_scale_filler()) options.filler = filler(p.scale_filler());
  return std::make_shared<Normalize>(options);
}

LayerPtr parameter(const caffe::LayerParameter& layer) {
  const caffe::ParameterParameter& p = layer.parameter_param();
  if (p.shape().dim_size() == 0) throw UserError("parameter_param.shape must be given, with a dim an axis");
  return std::make_shared<Parameter>(ParameterOptions{.shape = shape(p.shape())});
}

LayerPtr recurrent(const caffe::LayerParameter& layer, RecurrentOptions::Kind kind) {
  const caffe::RecurrentParameter& p = layer.recurrent_param();
  RecurrentOptions options{.kind = kind};
  options.num_output = to_positive("num_output", p.num_output());
  options.expose_hidden = p.expose_hidden();
  options.weight_filler = filler(p.weight_filler());
  options.bias_filler = filler(p.bias_filler());
  return std::make_shared<Recurrent>(options);
}
LayerPtr lstm(const caffe::LayerParameter& layer) { return recurrent(layer, RecurrentOptions::Kind::lstm); }
LayerPtr rnn(const caffe::LayerParameter& layer) { return recurrent(layer, RecurrentOptions::Kind::rnn); }

}  // namespace

std::span<const LayerType> weight_types() {
  static constexpr LayerType types[] = {
      {"InnerProduct", inner_product},
      {"Embed", embed},
      {"BatchNorm", batch_norm},
      {"Scale", scale},
      {"Bias", bias},
      {"PReLU", prelu},
      {"LRN", lrn},
      {"MVN", mvn},
      {"Parameter", parameter},
      {"Normalize", normalize},
      {"LSTM", lstm},
      {"RNN", rnn},
      {"LSTMUnit", nullptr, "it is a step of an LSTM layer; use LSTM"},
      {"Recurrent", nullptr, "it is what LSTM and RNN have in common; use one of them"},
  };
  return types;
}

}  // namespace cortado::from_caffe
