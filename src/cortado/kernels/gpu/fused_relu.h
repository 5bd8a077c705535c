#pragma once

#include <string>

#include "cortado/layers/pointwise.h"
#include "cortado/layers/task.h"

namespace cortado::gpu {

// Why what comes after the first layer of a chain is no ReLU of slope 0, alone; empty: it is, or nothing
// comes.
inline std::string chain_refusal(const Task& task) {
  if (task.layers.size() == 1) return "";
  const auto* pointwise = dynamic_cast<const Pointwise*>(task.layers[1].get());
  if (task.layers.size() == 2 && pointwise && pointwise->function() == PointwiseFunction(ReluOptions{}))
    return "";
  return "a " + std::string(task.layers.back()->type()) + " after it does not fuse";
}

}  // namespace cortado::gpu
