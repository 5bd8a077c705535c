#pragma once

#include <span>
#include <string_view>

#include "cortado/layers/layer.h"
#include "cortado/proto/caffe.pb.h"

namespace cortado::from_caffe {

// A layer type of Caffe: how its options become the concrete Layer, or why it is left out.
struct LayerType {
  std::string_view name;
  // Throws UserError on options that Caffe refuses as well; the caller adds file, line and layer. Null: left
  // out.
  LayerPtr (*convert)(const caffe::LayerParameter&) = nullptr;
  std::string_view refusal{};  // why, or what to use instead
};

// All of Caffe's layer types, by family; each has a file of the same name.
std::span<const LayerType> window_types();
std::span<const LayerType> weight_types();  // layers with parameters, and normalizations
std::span<const LayerType> pointwise_types();
std::span<const LayerType> loss_types();
std::span<const LayerType> shape_types();
std::span<const LayerType> source_types();

}  // namespace cortado::from_caffe
