#pragma once

#include "cortado/base/box.h"

namespace cortado {

// A dense, channels-last part of a tensor in memory.
struct TensorPart {
  Box box;
  float* memory = nullptr;
};

// Copies, or adds, `box` of one part to the same place of another; `box` lies within both.
void copy_box(const TensorPart& from, const TensorPart& to, const Box& box);
void add_box(const TensorPart& from, const TensorPart& to, const Box& box);

}  // namespace cortado
