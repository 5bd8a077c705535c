#pragma once

#include <string>
#include <vector>

#include "cortado/base/shape.h"
#include "cortado/onnx/constant.h"

namespace cortado::onnx {

// Positions that a Pad adds around one spatial axis.
struct AxisPad {
  int64_t begin = 0, end = 0;
  bool operator==(const AxisPad&) const = default;
};

// A value of the graph while it is read: a constant, or elements of a blob of the net. Nodes that only look
// at elements otherwise make no layer: they change how the value is seen.
struct Value {
  ConstantPtr constant;  // null: a blob

  std::string blob;
  Shape blob_shape;
  Shape shape;                // as the graph sees it: the blob's elements in row-major order
  std::vector<int> order;     // the graph's axes are these of `shape`; empty: its own order
  std::vector<AxisPad> pads;  // of the spatial axes, not yet in the blob nor in `shape`; empty: none
  double pad_value = 0;

  int layer = -1;             // of the net, that makes the blob
  bool shared = false;        // more than one node reads it, or it is an output of the graph
  bool not_negative = false;  // no element is below zero

  // What the graph takes for its shape.
  Shape seen() const;
};

}  // namespace cortado::onnx
