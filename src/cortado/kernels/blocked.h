#pragma once

#include <memory>
#include <vector>

#include "cortado/kernels/kernel.h"

namespace cortado {

// Kernels whose results depend neither on the device's share of a layer nor on the number of threads. Those
// of matrix products are so by themselves (Task::output_blocks). Of all others every fixed block
// (layers/sum_blocks.h) is computed on its own, by one thread, and what is summed over blocks is summed in a
// fixed tree (base/sum_tree.h).

// Runs the kernels of a task's blocks of samples, `tasks`, each on one of the compute threads. A device's
// blocks are a node of the tree. The kernels were made with one compute thread.
std::unique_ptr<Kernel> make_sample_blocked(const Task& task, const std::vector<Task>& tasks,
                                            std::vector<std::unique_ptr<Kernel>> kernels);

// Of a layer that splits its backward pass: all by `whole`, whose outputs and input gradients depend neither
// on the device's share nor on threads, but the gradients of parameters by `blocks`, of blocks of samples.
// Both save nothing and have one order of parameters.
std::unique_ptr<Kernel> make_weights_blocked(std::unique_ptr<Kernel> whole, std::unique_ptr<Kernel> blocks);

}  // namespace cortado
