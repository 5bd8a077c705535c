#pragma once

#include <memory>

#include "cortado/kernels/kernel.h"

namespace cortado {

// Naive kernels that everything else is compared with: loops over spoken indices, one thread, sums in double.
// T is float or double.

// The reference kernel of a task; of a chain of layers, the composite of their kernels.
// Throws UserError when a layer type has none or the kernel refuses the task.
template <typename T>
std::unique_ptr<KernelOf<T>> make_reference_kernel(const Task& task);

// The factories of layer_kernels.def take tasks of a single layer, whole or a part that the layer's cuts
// allow (HDF5Output: whole ones only). Parameters are the slices that Task::parameter_box names.
#define REFERENCE(name, ...) \
  template <typename T>      \
  std::unique_ptr<KernelOf<T>> make_##name##_reference(const Task& task);
#include "cortado/kernels/layer_kernels.def"

// A task of several layers: each layer's reference kernel in turn, through temporaries.
template <typename T>
std::unique_ptr<KernelOf<T>> make_chain_reference(const Task& task);

}  // namespace cortado
