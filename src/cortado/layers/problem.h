#pragma once

#include <optional>
#include <string>

#include "cortado/layers/task.h"

namespace cortado {

// All of a task that its time depends on, as text: layers with their options (fillers aside), phase, shapes,
// boxes, wanted gradients. Two tasks of one text are the same computation. Nothing for layers that are not
// known here.
std::optional<std::string> problem_of(const Task& task);
// On the kernels of that name; "": those that the list of all selects.
std::optional<std::string> problem_of(const Task& task, const std::string& kernels);

}  // namespace cortado
