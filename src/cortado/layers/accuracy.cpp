#include "cortado/layers/accuracy.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"

namespace cortado {

Accuracy::Accuracy(AccuracyOptions options) : LayerOf(options) {
  if (options_.top_k < 1) throw UserError(fmt::format("top_k must be at least 1, is {}", options_.top_k));
}

std::vector<Shape> Accuracy::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 2, 2);
  check_count("outputs", outputs, 1, 2);
  check_labels(inputs[0], options_.axis, inputs[1]);
  int64_t classes = AxisView(inputs[0], options_.axis).extent;
  if (options_.top_k > classes) {
    throw UserError(fmt::format("top_k {} is more than the {} classes of scores {}", options_.top_k, classes,
                                inputs[0].text()));
  }
  if (outputs == 1) return {Shape{}};
  return {Shape{}, Shape{classes}};
}

Box Accuracy::output_box(std::span<const Shape>, std::span<const Shape> outputs, int output,
                         const Box&) const {
  return Box::whole(outputs[output]);
}

// Output 1 has no part that says which part of the scores it comes from.
Box Accuracy::input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const {
  if (output == 1) return Box::whole(inputs[input]);
  if (input == 1) return label_box(inputs[0], options_.axis, inputs[1], output_box);
  return box_with_whole_axis(inputs[0], output_box, options_.axis);
}

Cuts Accuracy::cuts(std::span<const Shape> inputs) const {
  return label_cuts(inputs[0], options_.axis, inputs[1]);
}

Flops Accuracy::forward_flops(std::span<const Shape> inputs, std::span<const Shape>) const {
  return {1 * static_cast<double>(inputs[0].size())};
}

}  // namespace cortado
