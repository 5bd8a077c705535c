#pragma once

#include "cortado/layers/task.h"

namespace cortado {

// Throws UserError when a box of the task is only a part of its tensor, for kernels that do not cut.
void require_whole_tensors(const Task& task);

}  // namespace cortado
