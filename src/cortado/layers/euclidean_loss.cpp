#include "cortado/layers/euclidean_loss.h"

#include "cortado/layers/axes.h"

namespace cortado {

std::vector<Shape> EuclideanLoss::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 2, 2);
  check_count("output", outputs, 1, 1);
  check_same_samples(inputs[0], inputs[1]);
  return {Shape{}};
}

Flops EuclideanLoss::forward_flops(std::span<const Shape> inputs, std::span<const Shape>) const {
  return {3 * static_cast<double>(inputs[0].size())};
}

}  // namespace cortado
