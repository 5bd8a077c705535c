#pragma once

#include "cortado/kernels/kernel.h"

namespace cortado {

// The same task on tensors that are all f32.
Task in_f32(const Task& task);

// `inner`, made for in_f32(task), on tensors of the task's types: each pass converts what it reads, and what
// it writes, in scratch memory. For what has no kernel of its own for these types.
std::unique_ptr<Kernel> make_converted(std::unique_ptr<Kernel> inner, const Task& task);

}  // namespace cortado
