#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cortado/onnx/read/node.h"

// What convolutions and poolings share: the windows that they slide over an input.
namespace cortado::onnx {

// The window of a node along each spatial axis. Pads: those of the node and of a Pad before it.
struct NodeWindow {
  std::vector<int64_t> image;  // without pads
  std::vector<int64_t> kernel, stride, dilation;
  std::vector<AxisPad> before, own;  // of a Pad before the node; of the node itself

  size_t axes() const { return image.size(); }
  int64_t extent(size_t i) const { return dilation[i] * (kernel[i] - 1) + 1; }
  int64_t begin(size_t i) const { return before[i].begin + own[i].begin; }
  int64_t end(size_t i) const { return before[i].end + own[i].end; }
};

// `kernel`: the extents that the weight has; empty: the node says them. Throws UserError.
NodeWindow window_of(const Node& node, const Value& input, std::vector<int64_t> kernel);
// The input without the Pad before the node, which takes it.
Value unpadded(Value input);
// Adds a value to an option of a layer for each axis, or one where they are equal; none for the `fallback`.
void set_option(google::protobuf::RepeatedField<uint32_t>& field, const std::string& what,
                const std::vector<int64_t>& values, int64_t fallback);

}  // namespace cortado::onnx
