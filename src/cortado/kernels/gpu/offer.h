#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cortado/kernels/gpu/part.h"
#include "cortado/kernels/kernel.h"

namespace cortado::gpu {

// Why no kernel of this folder takes the task, whatever its layer; empty: nothing.
inline std::string common_refusal(const Task& task) {
  if (task.layers.size() > 1) return "a chain of layers";
  if (!task.all_f32()) return "tensors of other types than f32";
  for (const auto* shapes : {&task.inputs, &task.outputs})
    for (const Shape& shape : *shapes)
      if (shape.rank() > most_axes) return "more than five axes";
  return "";
}

template <typename KernelType, typename... Given>
KernelOffer offered(Given&&... given) {
  return {std::make_unique<KernelType>(std::forward<Given>(given)...), ""};
}

}  // namespace cortado::gpu
