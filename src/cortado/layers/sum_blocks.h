#pragma once

#include <span>

#include "cortado/layers/layer.h"
#include "cortado/layers/task.h"

namespace cortado {

// The fixed blocks over which reproducible sums go (docs/explanation/randomness.md). A layer alone says how
// many there are, so every cut has the same ones.

// Blocks of the layer's samples: the largest power of two, up to 8, that divides them. 1 where the layer's
// samples cannot be cut, a block does not lie in one piece of memory, or a parameter is one of samples.
int sample_blocks(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs);

// Whether it is a convolution or deconvolution without groups, or an inner product of samples: matrix
// products that can be summed in blocks of samples and of outputs whatever the device's share
// (Task::output_blocks).
bool has_fixed_products(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs);

// The same of the outputs of such a layer, over which the gradient of its input is a sum; 1 of other layers.
int channel_blocks(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs);

// Whether kernels give each of its channels the same bits whatever the other channels are: it copies, adds or
// compares elements (tests/kernels/law_test.cpp).
bool channels_stand_alone(const Layer& layer);

// Whether input `input` is read whole by every block of samples, so that its gradient is a sum over them.
bool shared_by_samples(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs,
                       int input);

// The tasks of the blocks of `blocks` along an axis of the domain that a task has, in order.
std::vector<Task> tasks_of_blocks(const Task& task, int axis, int blocks);

// Whether `range`, a device's part of `extent` in so many blocks, is a node of the tree over them.
bool is_node(const Range& range, int64_t extent, int blocks);

}  // namespace cortado
