#include "cortado/layers/pointwise.h"

#include "cortado/layers/dropout.h"
#include "cortado/net/caffe/conversions.h"

namespace cortado::from_caffe {

LayerPtr relu(const caffe::LayerParameter& layer) {
  return std::make_shared<Pointwise>(ReluOptions{.negative_slope = layer.relu_param().negative_slope()});
}

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

LayerPtr dropout(const caffe::LayerParameter& layer) {
  return std::make_shared<Dropout>(DropoutOptions{.ratio = layer.dropout_param().dropout_ratio()});
}

}  // namespace cortado::from_caffe
