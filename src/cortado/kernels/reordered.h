#pragma once

#include "cortado/kernels/kernel.h"

namespace cortado {

// `inner`, made for `task` with canonical parameters, on parameters that lie in `formats`: each run reorders
// them in scratch memory.
std::unique_ptr<Kernel> make_reordered(std::unique_ptr<Kernel> inner, std::vector<ParameterFormat> formats,
                                       const Task& task);

}  // namespace cortado
