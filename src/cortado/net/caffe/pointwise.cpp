#include "cortado/layers/pointwise.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/dropout.h"
#include "cortado/net/caffe/conversions.h"

namespace cortado::from_caffe {
namespace {

LayerPtr relu(const caffe::LayerParameter& layer) {
  return std::make_shared<Pointwise>(ReluOptions{.negative_slope = layer.relu_param().negative_slope()});
}

LayerPtr relu6(const caffe::LayerParameter&) { return std::make_shared<Pointwise>(Relu6Options{}); }

LayerPtr elu(const caffe::LayerParameter& layer) {
  return std::make_shared<Pointwise>(EluOptions{.alpha = layer.elu_param().alpha()});
}

LayerPtr sigmoid(const caffe::LayerParameter&) { return std::make_shared<Pointwise>(SigmoidOptions{}); }

LayerPtr tanh(const caffe::LayerParameter&) { return std::make_shared<Pointwise>(TanhOptions{}); }

LayerPtr abs_val(const caffe::LayerParameter&) { return std::make_shared<Pointwise>(AbsOptions{}); }

LayerPtr bnll(const caffe::LayerParameter&) { return std::make_shared<Pointwise>(BnllOptions{}); }

LayerPtr power(const caffe::LayerParameter& layer) {
  const caffe::PowerParameter& p = layer.power_param();
  return std::make_shared<Pointwise>(
      PowerOptions{.power = p.power(), .scale = p.scale(), .shift = p.shift()});
}

LayerPtr exp(const caffe::LayerParameter& layer) {
  const caffe::ExpParameter& p = layer.exp_param();
  return std::make_shared<Pointwise>(ExpOptions{.base = p.base(), .scale = p.scale(), .shift = p.shift()});
}

LayerPtr log(const caffe::LayerParameter& layer) {
  const caffe::LogParameter& p = layer.log_param();
  return std::make_shared<Pointwise>(LogOptions{.base = p.base(), .scale = p.scale(), .shift = p.shift()});
}

LayerPtr swish(const caffe::LayerParameter& layer) {
  return std::make_shared<Pointwise>(SwishOptions{.beta = layer.swish_param().beta()});
}

LayerPtr clip(const caffe::LayerParameter& layer) {
  const caffe::ClipParameter& p = layer.clip_param();
  if (!p.has_min() || !p.has_max()) throw UserError("clip_param needs both min and max");
  if (!(p.min() <= p.max()))
    throw UserError(fmt::format("min is {}, above max, which is {}; exchange them", p.min(), p.max()));
  return std::make_shared<Pointwise>(ClipOptions{.min = p.min(), .max = p.max()});
}

LayerPtr threshold(const caffe::LayerParameter& layer) {
  return std::make_shared<Pointwise>(ThresholdOptions{.threshold = layer.threshold_param().threshold()});
}

LayerPtr dropout(const caffe::LayerParameter& layer) {
  return std::make_shared<Dropout>(DropoutOptions{.ratio = layer.dropout_param().dropout_ratio()});
}

}  // namespace

std::span<const LayerType> pointwise_types() {
  static constexpr LayerType types[] = {
      {"ReLU", relu},
      {"ReLU6", relu6},
      {"ELU", elu},
      {"Sigmoid", sigmoid},
      {"TanH", tanh},
      {"AbsVal", abs_val},
      {"BNLL", bnll},
      {"Power", power},
      {"Exp", exp},
      {"Log", log},
      {"Swish", swish},
      {"Clip", clip},
      {"Threshold", threshold},
      {"Dropout", dropout},
  };
  return types;
}

}  // namespace cortado::from_caffe
