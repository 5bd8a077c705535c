#include "cortado/onnx/read/value.h"

namespace cortado::onnx {

Shape Value::seen() const {
  if (constant) return constant->shape;
  Shape result = shape;
  for (size_t i = 0; i < order.size(); ++i) result.set(static_cast<int>(i), shape[order[i]]);
  for (size_t i = 0; i < pads.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    result.set(axis, result[axis] + pads[i].begin + pads[i].end);
  }
  return result;
}

}  // namespace cortado::onnx
