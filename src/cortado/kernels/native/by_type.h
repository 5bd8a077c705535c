#pragma once

#include "cortado/kernels/kernel.h"
#include "cortado/kernels/tensor_type.h"

namespace cortado::native {

// The kernel that make.template operator()<E>() returns, E being what an element of that type is in memory.
template <typename Make>
KernelOffer offer_by_type(ElementType type, Make&& make) {
  if (!is_tensor_type(type)) return {nullptr, "tensors of " + std::string(name_of(type))};
  return with_tensor_type(type, [&]<typename E>() -> KernelOffer {
    return {make.template operator()<E>(), ""};
  });
}

// The same for a kernel that wants all tensors of the task to be of one type.
template <typename Make>
KernelOffer offer_by_type(const Task& task, Make&& make) {
  const ElementType type = task.input_type(0);
  for (int i = 1; i < static_cast<int>(task.inputs.size()); ++i)
    if (task.input_type(i) != type) return {nullptr, "inputs of several types"};
  for (int k = 0; k < static_cast<int>(task.outputs.size()); ++k)
    if (task.output_type(k) != type) return {nullptr, "an output of another type than the input"};
  return offer_by_type(type, make);
}

// Whether all tensors but input 0 are f32.
inline bool others_f32(const Task& task) {
  for (int i = 1; i < static_cast<int>(task.inputs.size()); ++i)
    if (task.input_type(i) != ElementType::f32) return false;
  for (int k = 0; k < static_cast<int>(task.outputs.size()); ++k)
    if (task.output_type(k) != ElementType::f32) return false;
  return true;
}

}  // namespace cortado::native
