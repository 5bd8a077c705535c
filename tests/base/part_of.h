#pragma once

#include <vector>

#include "cortado/base/box.h"

namespace cortado {

// A box of a tensor, both channels last: element by element, by strides.
inline std::vector<float> part_of(const Shape& shape, const std::vector<float>& values, const Box& box) {
  const Strides strides = channels_last_strides(shape);
  std::vector<float> part;
  const Shape extents = box.shape();
  for (int64_t i = 0; i < extents.size(); ++i) {
    int64_t left = i, at = 0;
    for (int place = extents.rank() - 1; place >= 0; --place) {
      const int axis = memory_axis(extents.rank(), place);
      at += (box[axis].begin + left % extents[axis]) * strides[axis];
      left /= extents[axis];
    }
    part.push_back(values[static_cast<size_t>(at)]);
  }
  return part;
}

}  // namespace cortado
