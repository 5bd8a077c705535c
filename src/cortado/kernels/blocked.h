#pragma once

#include <memory>
#include <vector>

#include "cortado/kernels/kernel.h"

namespace cortado {

// Kernels whose results depend neither on the device's share of a layer nor on the number of threads: every
// fixed block (layers/sum_blocks.h) is computed on its own, by one thread, and what is summed over blocks is
// summed in a fixed tree (base/sum_tree.h).

// Runs the kernels of a task's blocks of samples, `tasks`, each on one of the compute threads. A device's
// blocks are a node of the tree. The kernels were made with one compute thread.
std::unique_ptr<Kernel> make_sample_blocked(const Task& task, const std::vector<Task>& tasks,
                                            std::vector<std::unique_ptr<Kernel>> kernels);

// The same of an inner product's blocks of outputs, one after the other; `kernels` may use all threads, and
// take parameters in canonical order.
std::unique_ptr<Kernel> make_channel_blocked(const Task& task, const std::vector<Task>& tasks,
                                             std::vector<std::unique_ptr<Kernel>> kernels);

}  // namespace cortado
