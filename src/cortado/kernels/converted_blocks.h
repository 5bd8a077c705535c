#pragma once

#include <memory>
#include <optional>

#include "cortado/kernels/kernel.h"

namespace cortado {

// A converted kernel (kernels/converted.h) of a convolution, a block of samples at a time, so that the f32
// copies of a block stay in the caches between the conversion and the products.

// The task of one of the equal blocks of samples that `task`'s should go in; none where all stay in the
// caches together, where a block is smaller than the weights, which every block reads, or for other layers.
std::optional<Task> block_of_samples(const Task& task);

// `block`, a kernel of such a block, in turns on all of them; the gradient of weights that are not small next
// to a block by `whole`. `whole` alone where both want their weights in different orders.
std::unique_ptr<Kernel> make_converted_in_blocks(std::unique_ptr<Kernel> whole, std::unique_ptr<Kernel> block,
                                                 const Task& task, const Task& block_task);

}  // namespace cortado
