#include "cortado/net/from_caffe.h"

#include <fmt/format.h>
#include <map>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/base/nearest_name.h"
#include "cortado/base/text.h"
#include "cortado/net/caffe/conversions.h"

namespace cortado {
namespace {

const std::map<std::string_view, from_caffe::Conversion>& conversions() {
  static const std::map<std::string_view, from_caffe::Conversion> table = {
      {"AbsVal", from_caffe::abs_val},
      {"Accuracy", from_caffe::accuracy},
      {"ArgMax", from_caffe::arg_max},
      {"BNLL", from_caffe::bnll},
      {"BatchNorm", from_caffe::batch_norm},
      {"Bias", from_caffe::bias},
      {"Concat", from_caffe::concat},
      {"ContrastiveLoss", from_caffe::contrastive_loss},
      {"Convolution", from_caffe::convolution},
      {"Crop", from_caffe::crop},
      {"Data", from_caffe::data},
      {"Deconvolution", from_caffe::deconvolution},
      {"Dropout", from_caffe::dropout},
      {"DummyData", from_caffe::dummy_data},
      {"ELU", from_caffe::elu},
      {"Eltwise", from_caffe::eltwise},
      {"Embed", from_caffe::embed},
      {"EuclideanLoss", from_caffe::euclidean_loss},
      {"Exp", from_caffe::exp},
      {"Flatten", from_caffe::flatten},
      {"HDF5Data", from_caffe::hdf5_data},
      {"HDF5Output", from_caffe::hdf5_output},
      {"HingeLoss", from_caffe::hinge_loss},
      {"ImageData", from_caffe::image_data},
      {"InnerProduct", from_caffe::inner_product},
      {"Input", from_caffe::input},
      {"LRN", from_caffe::lrn},
      {"Log", from_caffe::log},
      {"MVN", from_caffe::mvn},
      {"MemoryData", from_caffe::memory_data},
      {"PReLU", from_caffe::prelu},
      {"Pooling", from_caffe::pooling},
      {"Power", from_caffe::power},
      {"ReLU", from_caffe::relu},
      {"Reduction", from_caffe::reduction},
      {"Reshape", from_caffe::reshape},
      {"Scale", from_caffe::scale},
      {"Sigmoid", from_caffe::sigmoid},
      {"SigmoidCrossEntropyLoss", from_caffe::sigmoid_cross_entropy_loss},
      {"Silence", from_caffe::silence},
      {"Slice", from_caffe::slice},
      {"Softmax", from_caffe::softmax},
      {"SoftmaxWithLoss", from_caffe::softmax_loss},
      {"Split", from_caffe::split},
      {"TanH", from_caffe::tanh},
      {"Tile", from_caffe::tile},
  };
  return table;
}

}  // namespace

const std::map<std::string_view, std::string_view>& refused_layer_types() {
  static const std::map<std::string_view, std::string_view> table = {
      {"BatchReindex", "the shape of its output depends on values"},
      {"Clip", "use ReLU or Eltwise"},
      {"Filter", "the shape of its output depends on values"},
      {"Im2col", "use Convolution"},
      {"InfogainLoss", "use SoftmaxWithLoss"},
      {"LSTM", "recurrent layers are not supported"},
      {"LSTMUnit", "recurrent layers are not supported"},
      {"MultinomialLogisticLoss", "use SoftmaxWithLoss on the scores"},
      {"Parameter", "use Scale or Bias"},
      {"Python", "there is no Python interpreter inside"},
      {"RNN", "recurrent layers are not supported"},
      {"Recurrent", "recurrent layers are not supported"},
      {"SPP", "use several Pooling layers and Concat"},
      {"Swish", "use Sigmoid and Eltwise with PROD"},
      {"Threshold", "it has no gradient; use Sigmoid"},
      {"WindowData", "use ImageData on cropped images"},
  };
  return table;
}

std::vector<std::string_view> supported_layer_types() {
  std::vector<std::string_view> names;
  for (const auto& [name, conversion] : conversions()) names.push_back(name);
  return names;
}

namespace {

[[noreturn]] void refuse_type(const std::string& type) {
  if (type.empty()) throw UserError("no type is given");
  auto known = refused_layer_types().find(type);
  if (known != refused_layer_types().end()) {
    throw UserError(fmt::format("Caffe's type '{}' is not supported: {}", type, known->second));
  }
  throw UserError(fmt::format("type '{}' is not supported{}", type,
                              type.size() < 100 ? did_you_mean(type, supported_layer_types()) : ""));
}

LayerPtr convert(const caffe::LayerParameter& layer) {
  auto conversion = conversions().find(layer.type());
  if (conversion == conversions().end()) refuse_type(layer.type());
  return conversion->second(layer);
}

// Names stand in messages, tables, pages and the names of files' records.
void check_name(std::string_view name, const char* kind, const SourceLocation& where) {
  constexpr size_t longest = 1024;
  if (name.size() > longest)
    throw UserError(fmt::format("{}: the name of a {} has {} bytes; it can have {}", where.text(), kind,
                                name.size(), longest));
  if (printable(name) != name)
    throw UserError(
        fmt::format("{}: the name of a {}, '{}', has control characters or bytes that are no UTF-8; "
                    "leave them out",
                    where.text(), kind, printable(name)));
}

void check_names(const caffe::LayerParameter& layer, const SourceLocation& where) {
  check_name(layer.name(), "layer", where);
  check_name(layer.type(), "layer's type", where);
  for (const std::string& blob : layer.bottom()) check_name(blob, "blob", where);
  for (const std::string& blob : layer.top()) check_name(blob, "blob", where);
  for (const caffe::ParamSpec& parameter : layer.param()) check_name(parameter.name(), "parameter", where);
}

}  // namespace

LayerDeclaration declare_layer(const caffe::LayerParameter& layer, const SourceLocation& where) {
  check_names(layer, where);
  LayerDeclaration declaration;
  declaration.name = declaration.file_name = layer.name();
  declaration.where = where;
  if (layer.blobs_size() > 0) {
    throw UserError(fmt::format(
        "{}: layer '{}': weights (blobs) within a model file are not read; keep them in a caffemodel "
        "and give --weights",
        where.text(), layer.name()));
  }
  try {
    declaration.layer = convert(layer);
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: layer '{}': {}", where.text(), layer.name(), error.what()));
  }
  declaration.bottoms.assign(layer.bottom().begin(), layer.bottom().end());
  declaration.tops.assign(layer.top().begin(), layer.top().end());
  for (const caffe::ParamSpec& spec : layer.param()) {
    declaration.parameters.push_back({.shared_name = spec.name(),
                                      .lr_mult = spec.lr_mult(),
                                      .decay_mult = spec.decay_mult(),
                                      .permissive = spec.share_mode() == caffe::ParamSpec::PERMISSIVE});
  }
  declaration.loss_weights.assign(layer.loss_weight().begin(), layer.loss_weight().end());
  if (layer.has_phase()) declaration.phase = layer.phase() == caffe::TRAIN ? Phase::train : Phase::test;
  declaration.propagate_down.assign(layer.propagate_down().begin(), layer.propagate_down().end());
  return declaration;
}

void force_backward(LayerDeclaration& layer) {
  layer.propagate_down.resize(layer.bottoms.size());
  for (size_t i = 0; i < layer.bottoms.size(); ++i) {
    bool possible = layer.layer->differentiable(static_cast<int>(i));
    if (possible && !layer.propagate_down[i]) layer.propagate_down[i] = true;
  }
}

}  // namespace cortado
