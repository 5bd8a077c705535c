#pragma once

#include <optional>
#include <string>

namespace cortado {

// How far a cut layer is from the uncut one: max |cut - uncut| / max |uncut| over the elements of a tensor,
// the largest of the layer's tensors; nothing where there is none to compare (tensors inside a chain of
// layers that one kernel runs do not exist). What is not finite differs infinitely.
struct LayerDifference {
  std::string layer;
  // Compared at iteration 1, where the weights are still equal.
  std::optional<double> activation, gradient, weight_gradient;
  // Compared after the last iteration: weights and running statistics.
  std::optional<double> weight;
  // What is beyond the limits at iteration 1, with its tensor, place and values; empty: nothing.
  // `lost_parts`: a tensor whose parts do not add up.
  std::string lost_parts{}, activation_fault{}, gradient_fault{}, weight_gradient_fault{};
};

// Limits that float32 keeps: of the loss at iteration 1 and at the last, and of ||cut - uncut|| / ||uncut||
// of each tensor at iteration 1. Where rounding lets a ReLU or a maximum choose otherwise, single elements of
// a gradient differ as a whole, and its norm little; a lost row or addend changes the norm by some percent.
// Weights up to the last layer that normalizes by statistics of the batch have a wider limit: over few values
// their gradients are small differences of large numbers.
constexpr double first_loss_limit = 1e-5, last_loss_limit = 1e-3;
constexpr double activation_limit = 1e-3, gradient_limit = 3e-2;
constexpr double weight_gradient_limit = 1e-2, normalized_weight_gradient_limit = 5e-2;

}  // namespace cortado
