#pragma once

#include "cortado/kernels/kernel.h"
#include "cortado/kernels/reference/chain.h"

namespace cortado::check {

// The task of a chain of layers of one input and one output each, on whole tensors.
inline Task chain_task(std::vector<LayerPtr> layers, const Shape& input, Phase phase = Phase::train) {
  return cortado::chain_task(std::move(layers), phase, {&input, 1});
}

}  // namespace cortado::check
