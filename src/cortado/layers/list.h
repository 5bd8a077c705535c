#pragma once

#include <span>
#include <string_view>

namespace cortado {

// All layer types by Caffe's name; net/from_caffe.cpp has a conversion for each.
struct LayerType {
  std::string_view name;
  std::string_view description;
};
std::span<const LayerType> layer_types();

// Whether a layer of that type exists.
bool is_layer_type(std::string_view name);

}  // namespace cortado
