#pragma once

#include <string>

#include "cortado/layers/task.h"

namespace cortado {

// Type and options (fillers aside) of a layer: layers of one key compute the same in the same time.
std::string key_of(const Layer& layer);

// All of a task that its time depends on, as text: keys of its layers, phase, shapes, boxes, wanted
// gradients. Two tasks of one text are the same computation.
std::string problem_of(const Task& task);
// The same, with the name of the kernels that run the task; "": those that the list of all selects.
std::string problem_of(const Task& task, const std::string& kernels);

}  // namespace cortado
