#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cortado/kernels/gpu/part.h"
#include "cortado/kernels/kernel.h"
#include "cortado/kernels/tensor_type.h"

namespace cortado::gpu {

inline std::string axes_refusal(const Task& task) {
  for (const auto* shapes : {&task.inputs, &task.outputs})
    for (const Shape& shape : *shapes)
      if (shape.rank() > most_axes) return "more than five axes";
  return "";
}

// Why no kernel of this folder takes the task, whatever its layer; empty: nothing.
inline std::string common_refusal(const Task& task) {
  if (task.layers.size() > 1) return "a chain of layers";
  return task.all_f32() ? axes_refusal(task) : "tensors of other types than f32";
}

// The same for kernels of chains of layers whose tensors are all f32 or all bf16.
inline std::string chain_tensors_refusal(const Task& task) {
  const ElementType type = task.input_type(0);
  bool one = is_tensor_type(type);
  for (size_t i = 0; i < task.inputs.size(); ++i) one = one && task.input_type(static_cast<int>(i)) == type;
  for (size_t i = 0; i < task.outputs.size(); ++i) one = one && task.output_type(static_cast<int>(i)) == type;
  return one ? axes_refusal(task) : "tensors of two types";
}

// The same for one layer.
inline std::string one_type_refusal(const Task& task) {
  return task.layers.size() > 1 ? "a chain of layers" : chain_tensors_refusal(task);
}

template <typename KernelType, typename... Given>
KernelOffer offered(Given&&... given) {
  return {std::make_unique<KernelType>(std::forward<Given>(given)...), ""};
}

}  // namespace cortado::gpu
