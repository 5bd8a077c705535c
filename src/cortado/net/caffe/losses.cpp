#include <fmt/format.h>
#include <optional>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/layers/accuracy.h"
#include "cortado/layers/arg_max.h"
#include "cortado/layers/contrastive_loss.h"
#include "cortado/layers/euclidean_loss.h"
#include "cortado/layers/hinge_loss.h"
#include "cortado/layers/infogain_loss.h"
#include "cortado/layers/multinomial_logistic_loss.h"
#include "cortado/layers/sigmoid_cross_entropy_loss.h"
#include "cortado/layers/softmax.h"
#include "cortado/layers/softmax_loss.h"
#include "cortado/net/caffe/conversions.h"
#include "cortado/net/caffe/options.h"

namespace cortado::from_caffe {
namespace {

// `normalization`, else the older `normalize`, else the layer's own default.
Normalization normalization(const caffe::LossParameter& loss, Normalization fallback) {
  if (!loss.has_normalization()) {
    if (!loss.has_normalize()) return fallback;
    return loss.normalize() ? Normalization::valid : Normalization::batch_size;
  }
  switch (loss.normalization()) {
    case caffe::LossParameter::FULL:
      return Normalization::full;
    case caffe::LossParameter::VALID:
      return Normalization::valid;
    case caffe::LossParameter::BATCH_SIZE:
      return Normalization::batch_size;
    case caffe::LossParameter::NONE:
      return Normalization::none;
  }
  throw InternalError("unknown loss normalization");
}

template <typename Parameter>
std::optional<int> ignored_label(const Parameter& parameter) {
  return parameter.has_ignore_label() ? std::optional<int>(parameter.ignore_label()) : std::nullopt;
}

// The part of a label that all classes share.
double label_smoothing(const caffe::LossParameter& loss) {
  const float part = loss.label_smoothing();
  if (!(part >= 0 && part < 1))
    throw UserError(fmt::format("label_smoothing is {:g}; use a value of at least 0 and below 1", part));
  return part;
}

// Of a loss whose labels are no classes.
void refuse_label_smoothing(const caffe::LossParameter& loss, std::string_view type) {
  if (loss.has_label_smoothing())
    throw UserError(fmt::format("{} takes no label_smoothing; remove it", type));
}

LayerPtr softmax(const caffe::LayerParameter& layer) {
  return std::make_shared<Softmax>(SoftmaxOptions{.axis = layer.softmax_param().axis()});
}

LayerPtr softmax_loss(const caffe::LayerParameter& layer) {
  SoftmaxLossOptions options;
  options.axis = layer.softmax_param().axis();
  options.ignore_label = ignored_label(layer.loss_param());
  options.normalization = normalization(layer.loss_param(), Normalization::valid);
  options.label_smoothing = label_smoothing(layer.loss_param());
  return std::make_shared<SoftmaxLoss>(options);
}

LayerPtr sigmoid_cross_entropy_loss(const caffe::LayerParameter& layer) {
  refuse_label_smoothing(layer.loss_param(), layer.type());
  SigmoidCrossEntropyLossOptions options;
  options.ignore_label = ignored_label(layer.loss_param());
  options.normalization = normalization(layer.loss_param(), Normalization::batch_size);
  return std::make_shared<SigmoidCrossEntropyLoss>(options);
}

LayerPtr euclidean_loss(const caffe::LayerParameter&) { return std::make_shared<EuclideanLoss>(); }

LayerPtr hinge_loss(const caffe::LayerParameter& layer) {
  bool l2 = layer.hinge_loss_param().norm() == caffe::HingeLossParameter::L2;
  return std::make_shared<HingeLoss>(
      HingeLossOptions{.norm = l2 ? HingeLossOptions::Norm::l2 : HingeLossOptions::Norm::l1});
}

LayerPtr contrastive_loss(const caffe::LayerParameter& layer) {
  const caffe::ContrastiveLossParameter& p = layer.contrastive_loss_param();
  return std::make_shared<ContrastiveLoss>(
      ContrastiveLossOptions{.margin = p.margin(), .legacy_version = p.legacy_version()});
}

LayerPtr multinomial_logistic_loss(const caffe::LayerParameter&) {
  return std::make_shared<MultinomialLogisticLoss>();
}

// The values of a BlobProto.
std::vector<float> read_matrix(const std::string& path) {
  caffe::BlobProto blob;
  if (!blob.ParseFromString(read_file(path)) || blob.data_size() == 0)
    throw UserError(fmt::format("{} is no matrix (a BlobProto); check infogain_loss_param.source", path));
  return {blob.data().begin(), blob.data().end()};
}

LayerPtr infogain_loss(const caffe::LayerParameter& layer) {
  const caffe::InfogainLossParameter& p = layer.infogain_loss_param();
  refuse_label_smoothing(layer.loss_param(), layer.type());
  InfogainLossOptions options;
  options.axis = p.axis();
  options.ignore_label = ignored_label(layer.loss_param());
  options.normalization = normalization(layer.loss_param(), Normalization::valid);
  if (layer.bottom_size() > 2 || p.source().empty()) return std::make_shared<InfogainLoss>(options);
  options.source = p.source();
  return std::make_shared<InfogainLoss>(options, read_matrix(p.source()));
}

LayerPtr accuracy(const caffe::LayerParameter& layer) {
  const caffe::AccuracyParameter& p = layer.accuracy_param();
  AccuracyOptions options;
  options.top_k = to_positive("top_k", p.top_k());
  options.axis = p.axis();
  options.ignore_label = ignored_label(p);
  return std::make_shared<Accuracy>(options);
}

LayerPtr arg_max(const caffe::LayerParameter& layer) {
  const caffe::ArgMaxParameter& p = layer.argmax_param();
  ArgMaxOptions options;
  options.out_max_val = p.out_max_val();
  options.top_k = to_positive("top_k", p.top_k());
  if (p.has_axis()) options.axis = p.axis();
  return std::make_shared<ArgMax>(options);
}

}  // namespace

std::span<const LayerType> loss_types() {
  static constexpr LayerType types[] = {
      {"Softmax", softmax},
      {"SoftmaxWithLoss", softmax_loss},
      {"SigmoidCrossEntropyLoss", sigmoid_cross_entropy_loss},
      {"EuclideanLoss", euclidean_loss},
      {"HingeLoss", hinge_loss},
      {"ContrastiveLoss", contrastive_loss},
      {"MultinomialLogisticLoss", multinomial_logistic_loss},
      {"InfogainLoss", infogain_loss},
      {"Accuracy", accuracy},
      {"ArgMax", arg_max},
  };
  return types;
}

}  // namespace cortado::from_caffe
