#pragma once

#include <optional>

#include "cortado/net/blob.h"
#include "cortado/onnx/read/node.h"

namespace cortado::onnx {

// ONNX lays shapes beside each other from their last axes on, and repeats axes of extent 1.

// The shape of both together. Throws UserError where they do not fit.
Shape broadcast_shape(const Shape& a, const Shape& b);
// Whether `part` may be repeated to `whole`.
bool broadcasts_into(const Shape& part, const Shape& whole);

// The axes [begin, end) of `whole` that `part` has, where it is repeated along all others: what Caffe's Scale
// and Bias take as their second input. Samples are among them where both have them, so that the batch size
// may change. Empty: other axes lie between.
struct AxisRange {
  int begin = 0, end = 0;
};
std::optional<AxisRange> axes_of_part(const Shape& part, const Shape& whole);

// A constant as the parameter of a Scale or Bias on a tensor of shape `whole`: it has the axes from `axis`
// on. Throws UserError where the constant is larger than that.
struct BroadcastOperand {
  int axis = 0;
  Blob blob;
};
BroadcastOperand operand_of(const Constant& constant, const Shape& whole);

// The value repeated to `shape` by Tile layers.
Value tiled(Node& node, const Value& value, const Shape& shape, const std::string& part);

}  // namespace cortado::onnx
