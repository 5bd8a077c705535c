#pragma once

#include "cortado/kernels/kernel.h"

namespace cortado::check {

// The task of a chain of layers of one input and one output each, on whole tensors.
inline Task chain_task(std::vector<LayerPtr> layers, const Shape& input, Phase phase = Phase::train) {
  Task task = whole_task(layers.front(), phase, {&input, 1}, 1);
  for (size_t i = 1; i < layers.size(); ++i) {
    const Task next = whole_task(layers[i], phase, task.outputs, 1);
    task.outputs = next.outputs;
    task.output_boxes = next.output_boxes;
    task.parameter_gradients.insert(task.parameter_gradients.end(), next.parameter_gradients.begin(),
                                    next.parameter_gradients.end());
  }
  task.layers = std::move(layers);
  return task;
}

}  // namespace cortado::check
