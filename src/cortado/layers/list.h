#pragma once

#include <span>
#include <string_view>

namespace cortado {

// All layer types by Caffe's name, for `cortado show` and for messages that suggest the nearest name.
struct LayerType {
  std::string_view name;
  std::string_view description;
};
std::span<const LayerType> layer_types();

// Whether a layer of that type exists.
bool is_layer_type(std::string_view name);

}  // namespace cortado
