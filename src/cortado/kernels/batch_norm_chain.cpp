#include "cortado/kernels/batch_norm_chain.h"

#include "cortado/layers/scale.h"

namespace cortado {

std::optional<BatchNormChain> batch_norm_chain(const Task& task, std::string& refusal) {
  auto* norm = dynamic_cast<const BatchNorm*>(task.layers.front().get());
  if (!norm) return refusal = "not a BatchNorm", std::nullopt;
  BatchNormChain chain{.options = norm->options()};
  size_t next = 1;
  if (next < task.layers.size()) {
    if (auto* scale = dynamic_cast<const Scale*>(task.layers[next].get())) {
      if (task.inputs[0].rank() < 2) return refusal = "a tensor without channel axis", std::nullopt;
      if (scale->options().broadcast.operand(task.inputs) != Shape{task.inputs[0][1]} ||
          scale->options().broadcast.first_axis(task.inputs) != 1) {
        return refusal = "the Scale is not per channel", std::nullopt;
      }
      chain.scale = true;
      chain.bias = scale->options().bias_term;
      ++next;
    }
  }
  if (next < task.layers.size() && (chain.activation = activation_of(*task.layers[next]))) ++next;
  if (next < task.layers.size()) return refusal = "a layer after BatchNorm does not fuse", std::nullopt;
  return chain;
}

}  // namespace cortado
