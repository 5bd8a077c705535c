#pragma once

#include <string>

#include "cortado/layers/pointwise.h"
#include "cortado/layers/task.h"

namespace cortado {

// Says whether a layer is the ReLU that kernels of other layers compute, too: of slope 0.
inline bool is_fused_relu(const Layer& layer) {
  const auto* pointwise = dynamic_cast<const Pointwise*>(&layer);
  return pointwise && pointwise->function() == PointwiseFunction(ReluOptions{});
}

// Why what comes after the first layer of a chain is not that ReLU, alone; empty: it is, or nothing comes.
inline std::string chain_refusal(const Task& task) {
  if (task.layers.size() == 1 || (task.layers.size() == 2 && is_fused_relu(*task.layers[1]))) return "";
  return "a " + std::string(task.layers.back()->type()) + " after it does not fuse";
}

}  // namespace cortado
