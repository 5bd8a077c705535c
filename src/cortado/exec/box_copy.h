#pragma once

#include <cstddef>

#include "cortado/base/box.h"
#include "cortado/base/element_type.h"
#include "cortado/device/queue.h"

namespace cortado {

// A dense, channels-last part of a tensor in memory.
struct TensorPart {
  Box box;
  std::byte* memory = nullptr;
  ElementType type = ElementType::f32;

  std::byte* at(const Box& inner) const;  // where a box within it begins
};

// Copies, or adds, `box` of one part to the same place of another; `box` lies within both. Where their types
// differ elements are converted; sums are of floats (of doubles, where one is f64), each rounded to the
// target's type.
void copy_box(const TensorPart& from, const TensorPart& to, const Box& box);
void add_box(const TensorPart& from, const TensorPart& to, const Box& box);
// The same in the memory of a device, launched on its queue; and zeros for all of a part.
void launch_copy(device::Queue& queue, const TensorPart& from, const TensorPart& to, const Box& box);
void launch_add(device::Queue& queue, const TensorPart& from, const TensorPart& to, const Box& box);
void launch_zero(device::Queue& queue, const TensorPart& part);

}  // namespace cortado
