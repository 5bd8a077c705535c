#pragma once

#include "cortado/layers/task.h"

namespace cortado {

// The tasks of a chain's single layers, in order. Layer 0 takes the task's inputs; every later layer takes
// the output before it. Parameters are those of the layers in order; every intermediate tensor wants a
// gradient when the task has a backward pass.
struct ChainLink {
  Task task;
  int first_parameter = 0;  // its parameters in the task's order
  int parameter_count = 0;
};
std::vector<ChainLink> chain_links(const Task& task);

// The chain of layers on a single device: every box the whole tensor, every gradient wanted in training.
Task chain_task(std::vector<LayerPtr> layers, Phase phase, std::span<const Shape> inputs);

// Parameters of all layers of a task in order.
std::vector<ParameterSpec> task_parameters(const Task& task);

}  // namespace cortado
