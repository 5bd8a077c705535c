#pragma once

#include <span>
#include <string_view>

#include "cortado/onnx/write/graph_writer.h"

namespace cortado::onnx {

// A type of layer: how a layer of it becomes nodes. `write` throws a UserError without the layer's name.
struct LayerWriter {
  std::string_view type;
  void (*write)(WrittenLayer& layer) = nullptr;
};

// All types, by family; each has a file of the same name.
std::span<const LayerWriter> window_writers();
std::span<const LayerWriter> weight_writers();  // with parameters, and normalizations
std::span<const LayerWriter> function_writers();
std::span<const LayerWriter> shape_writers();

// Whether a BatchNorm layer becomes one node with the Scale layer after it, which writes both.
bool is_fused_norm(const Network& network, NodeIndex node);

}  // namespace cortado::onnx
