#include "cortado/net/upgrade_v0.h"

#include <fmt/format.h>
#include <map>

#include "cortado/base/error.h"
#include "cortado/net/network.h"

namespace cortado {
namespace {

using V1 = caffe::V1LayerParameter;
using V0 = caffe::V0LayerParameter;

const std::map<std::string, V1::LayerType>& v1_types() {
  static const std::map<std::string, V1::LayerType> types = {
      {"accuracy", V1::ACCURACY},
      {"bnll", V1::BNLL},
      {"concat", V1::CONCAT},
      {"conv", V1::CONVOLUTION},
      {"data", V1::DATA},
      {"dropout", V1::DROPOUT},
      {"euclidean_loss", V1::EUCLIDEAN_LOSS},
      {"flatten", V1::FLATTEN},
      {"hdf5_data", V1::HDF5_DATA},
      {"hdf5_output", V1::HDF5_OUTPUT},
      {"im2col", V1::IM2COL},
      {"images", V1::IMAGE_DATA},
      {"infogain_loss", V1::INFOGAIN_LOSS},
      {"innerproduct", V1::INNER_PRODUCT},
      {"lrn", V1::LRN},
      {"multinomial_logistic_loss", V1::MULTINOMIAL_LOGISTIC_LOSS},
      {"pool", V1::POOLING},
      {"relu", V1::RELU},
      {"sigmoid", V1::SIGMOID},
      {"softmax", V1::SOFTMAX},
      {"softmax_loss", V1::SOFTMAX_LOSS},
      {"split", V1::SPLIT},
      {"tanh", V1::TANH},
      {"window_data", V1::WINDOW_DATA},
  };
  return types;
}

// num_output, bias and fillers: the same fields in both messages.
template <typename Parameter>
void set_filters(const V0& v0, Parameter& parameter) {
  if (v0.has_num_output()) parameter.set_num_output(v0.num_output());
  if (v0.has_biasterm()) parameter.set_bias_term(v0.biasterm());
  if (v0.has_weight_filler()) *parameter.mutable_weight_filler() = v0.weight_filler();
  if (v0.has_bias_filler()) *parameter.mutable_bias_filler() = v0.bias_filler();
}

void set_convolution(const V0& v0, caffe::ConvolutionParameter& convolution) {
  set_filters(v0, convolution);
  if (v0.has_pad()) convolution.add_pad(v0.pad());
  if (v0.has_kernelsize()) convolution.add_kernel_size(v0.kernelsize());
  if (v0.has_group()) convolution.set_group(v0.group());
  if (v0.has_stride()) convolution.add_stride(v0.stride());
}

void set_pooling(const V0& v0, caffe::PoolingParameter& pooling) {
  if (v0.has_pool()) pooling.set_pool(static_cast<caffe::PoolingParameter::PoolMethod>(v0.pool()));
  if (v0.has_pad()) pooling.set_pad(v0.pad());
  if (v0.has_kernelsize()) pooling.set_kernel_size(v0.kernelsize());
  if (v0.has_stride()) pooling.set_stride(v0.stride());
}

void set_lrn(const V0& v0, caffe::LRNParameter& lrn) {
  if (v0.has_local_size()) lrn.set_local_size(v0.local_size());
  if (v0.has_alpha()) lrn.set_alpha(v0.alpha());
  if (v0.has_beta()) lrn.set_beta(v0.beta());
  if (v0.has_k()) lrn.set_k(v0.k());
}

void set_window_data(const V0& v0, caffe::WindowDataParameter& window) {
  if (v0.has_det_fg_threshold()) window.set_fg_threshold(v0.det_fg_threshold());
  if (v0.has_det_bg_threshold()) window.set_bg_threshold(v0.det_bg_threshold());
  if (v0.has_det_fg_fraction()) window.set_fg_fraction(v0.det_fg_fraction());
  if (v0.has_det_context_pad()) window.set_context_pad(v0.det_context_pad());
  if (v0.has_det_crop_mode()) window.set_crop_mode(v0.det_crop_mode());
}

template <typename Parameter>
void set_source(const V0& v0, Parameter& parameter) {
  if (v0.has_source()) parameter.set_source(v0.source());
  if (v0.has_batchsize()) parameter.set_batch_size(v0.batchsize());
}

void set_image_data(const V0& v0, caffe::ImageDataParameter& images) {
  set_source(v0, images);
  if (v0.has_rand_skip()) images.set_rand_skip(v0.rand_skip());
  if (v0.has_shuffle_images()) images.set_shuffle(v0.shuffle_images());
  if (v0.has_new_height()) images.set_new_height(static_cast<uint32_t>(v0.new_height()));
  if (v0.has_new_width()) images.set_new_width(static_cast<uint32_t>(v0.new_width()));
}

void set_transform(const V0& v0, V1& v1) {
  if (v0.has_scale()) v1.mutable_transform_param()->set_scale(v0.scale());
  if (v0.has_meanfile()) v1.mutable_transform_param()->set_mean_file(v0.meanfile());
  if (v0.has_cropsize()) v1.mutable_transform_param()->set_crop_size(v0.cropsize());
  if (v0.has_mirror()) v1.mutable_transform_param()->set_mirror(v0.mirror());
}

void set_parameters(const V0& v0, V1& v1) {
  switch (v1.type()) {
    case V1::CONVOLUTION:
      return set_convolution(v0, *v1.mutable_convolution_param());
    case V1::POOLING:
      return set_pooling(v0, *v1.mutable_pooling_param());
    case V1::INNER_PRODUCT:
      return set_filters(v0, *v1.mutable_inner_product_param());
    case V1::LRN:
      return set_lrn(v0, *v1.mutable_lrn_param());
    case V1::DROPOUT:
      if (v0.has_dropout_ratio()) v1.mutable_dropout_param()->set_dropout_ratio(v0.dropout_ratio());
      return;
    case V1::CONCAT:
      if (v0.has_concat_dim()) v1.mutable_concat_param()->set_concat_dim(v0.concat_dim());
      return;
    case V1::DATA:
      set_source(v0, *v1.mutable_data_param());
      if (v0.has_rand_skip()) v1.mutable_data_param()->set_rand_skip(v0.rand_skip());
      return;
    case V1::HDF5_DATA:
      return set_source(v0, *v1.mutable_hdf5_data_param());
    case V1::IMAGE_DATA:
      return set_image_data(v0, *v1.mutable_image_data_param());
    case V1::WINDOW_DATA:
      set_source(v0, *v1.mutable_window_data_param());
      return set_window_data(v0, *v1.mutable_window_data_param());
    case V1::INFOGAIN_LOSS:
      if (v0.has_source()) v1.mutable_infogain_loss_param()->set_source(v0.source());
      return;
    case V1::HDF5_OUTPUT:
      if (v0.has_hdf5_output_param()) *v1.mutable_hdf5_output_param() = v0.hdf5_output_param();
      return;
    default:
      return;
  }
}

void upgrade_layer(V1& layer, const SourceLocation& where) {
  if (!layer.has_layer()) return;
  V0 v0 = layer.layer();
  layer.clear_layer();
  if (v0.has_name()) layer.set_name(v0.name());
  auto type = v1_types().find(v0.type());
  if (type == v1_types().end()) {
    throw UserError(fmt::format("{}: layer '{}': type '{}' is not one of the oldest generation's",
                                where.text(), v0.name(), v0.type()));
  }
  layer.set_type(type->second);
  layer.mutable_blobs()->MergeFrom(v0.blobs());
  layer.mutable_blobs_lr()->MergeFrom(v0.blobs_lr());
  layer.mutable_weight_decay()->MergeFrom(v0.weight_decay());
  set_transform(v0, layer);
  set_parameters(v0, layer);
}

bool is_padding(const V1& layer) { return layer.layer().type() == "padding"; }

// Convolutions and poolings read what a padding layer reads and pad themselves.
void fold_padding(caffe::NetParameter& net, std::vector<int>& lines, const std::string& path) {
  std::map<std::string, V1> padding_of;  // by the top of the padding layer
  caffe::NetParameter folded = net;
  folded.clear_layers();
  std::vector<int> kept;
  for (int i = 0; i < net.layers_size(); ++i) {
    V1 layer = net.layers(i);
    SourceLocation where{path, lines[i]};
    if (is_padding(layer)) {
      if (layer.bottom_size() != 1 || layer.top_size() != 1) {
        throw UserError(fmt::format("{}: a padding layer needs one bottom and one top", where.text()));
      }
      padding_of[layer.top(0)] = layer;
      continue;
    }
    for (int b = 0; b < layer.bottom_size(); ++b) {
      auto padding = padding_of.find(layer.bottom(b));
      if (padding == padding_of.end()) continue;
      if (layer.layer().type() != "conv" && layer.layer().type() != "pool") {
        throw UserError(fmt::format("{}: layer '{}' reads a padding layer; only conv and pool can",
                                    where.text(), layer.layer().name()));
      }
      layer.mutable_layer()->set_pad(padding->second.layer().pad());
      layer.set_bottom(b, padding->second.bottom(0));
    }
    for (const std::string& top : layer.top()) padding_of.erase(top);
    *folded.add_layers() = std::move(layer);
    kept.push_back(lines[i]);
  }
  net = std::move(folded);
  lines = std::move(kept);
}

}  // namespace

void upgrade_v0_layers(caffe::NetParameter& net, std::vector<int>& lines, const std::string& path) {
  bool any = false, padding = false;
  for (const V1& layer : net.layers()) {
    any = any || layer.has_layer();
    padding = padding || is_padding(layer);
  }
  if (!any) return;
  if (padding) fold_padding(net, lines, path);
  for (int i = 0; i < net.layers_size(); ++i) upgrade_layer(*net.mutable_layers(i), {path, lines[i]});
}

}  // namespace cortado
