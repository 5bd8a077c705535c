#pragma once

#include <optional>
#include <string>

#include "cortado/layers/batch_norm.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/task.h"

namespace cortado {

// A BatchNorm, or one with a Scale, an activation or both after it. Parameters are mean', variance', factor,
// then gamma, then beta.
struct BatchNormChain {
  static constexpr int gamma = 3, beta = 4;  // numbers of parameters

  BatchNormOptions options;
  bool scale = false, bias = false;
  std::optional<Activation> activation;
};

// Nothing, and why, where the task is another chain or its Scale is not per channel.
std::optional<BatchNormChain> batch_norm_chain(const Task& task, std::string& refusal);

}  // namespace cortado
