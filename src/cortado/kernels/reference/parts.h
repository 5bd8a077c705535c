#pragma once

#include <span>

#include "cortado/layers/axes.h"

namespace cortado::reference {

// Calls visit(part, index in the part, index in the whole), spoken indices, for every element of tensors that
// lie one after the other along `axis` of a whole.
template <typename Visit>
void for_each_part_element(std::span<const Shape> parts, const Shape& whole, int axis, Visit&& visit) {
  AxisView all(whole, axis);
  int64_t offset = 0;
  for (size_t part = 0; part < parts.size(); ++part) {
    AxisView view(parts[part], axis);
    for (int64_t index = 0; index < parts[part].size(); ++index) {
      int64_t after = index % view.after;
      int64_t along = index / view.after % view.extent;
      int64_t before = index / view.after / view.extent;
      visit(part, index, (before * all.extent + offset + along) * all.after + after);
    }
    offset += view.extent;
  }
}

}  // namespace cortado::reference
