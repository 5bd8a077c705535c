#include "cortado/layers/infogain_loss.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"

namespace cortado {

std::vector<Shape> InfogainLoss::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 2, 3);
  check_count("outputs", outputs, 1, 2);
  check_labels(inputs[0], options_.axis, inputs[1]);
  const bool from_file = inputs.size() == 2;
  if (from_file && options_.source.empty())
    throw UserError("the infogain matrix is not given; set source, or give it as the third input");
  const int64_t classes = AxisView(inputs[0], options_.axis).extent;
  const int64_t given = from_file ? static_cast<int64_t>(matrix_.size()) : inputs[2].size();
  if (given != classes * classes)
    throw UserError(fmt::format("the infogain matrix of {} classes needs {} x {} values, but {} has {}",
                                classes, classes, classes, from_file ? options_.source : "input 3", given));
  if (outputs == 1) return {Shape{}};
  return {Shape{}, inputs[0]};
}

Box InfogainLoss::input_box(std::span<const Shape> inputs, int input, int, const Box& output_box) const {
  if (input == 2) return Box::whole(inputs[2]);
  if (input == 1) return label_box(inputs[0], options_.axis, inputs[1], output_box);
  return box_with_whole_axis(inputs[0], output_box, options_.axis);
}

Cuts InfogainLoss::cuts(std::span<const Shape> inputs) const {
  return label_cuts(inputs[0], options_.axis, inputs[1]);
}

Flops InfogainLoss::forward_flops(std::span<const Shape> inputs, std::span<const Shape>) const {
  return {7 * static_cast<double>(inputs[0].size())};
}

}  // namespace cortado
