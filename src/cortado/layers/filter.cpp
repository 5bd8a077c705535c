#include "cortado/layers/filter.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"

namespace cortado {

Filter::Filter(FilterOptions options) : LayerOf(options) {
  if (options_.samples < 1)
    throw UserError(
        "how many samples pass depends on values, while shapes here are fixed; give the number that passes "
        "of "
        "every batch as filter_param { samples: ... }, or let a loss pass over samples by ignore_label");
}

std::vector<Shape> Filter::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("inputs", inputs.size(), 2, -1);
  check_count("outputs", outputs, static_cast<int>(inputs.size()) - 1, static_cast<int>(inputs.size()) - 1);
  const Shape& selector = inputs.back();
  selector.canonical_axis(0);
  if (selector.count(1) != 1)
    throw UserError(fmt::format("the selector, the last input, must have one value a sample, has shape {}",
                                selector.text()));
  if (options_.samples > selector[0])
    throw UserError(
        fmt::format("filter_param.samples is {}, but a batch has {} samples; use at most that many",
                    options_.samples, selector[0]));
  std::vector<Shape> shapes(inputs.begin(), inputs.end() - 1);
  for (Shape& shape : shapes) {
    if (shape.rank() == 0 || shape[0] != selector[0])
      throw UserError(fmt::format("an input of shape {} has not the {} samples that the selector has",
                                  shape.text(), selector[0]));
    shape.set(0, options_.samples);
  }
  return shapes;
}

Box Filter::input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const {
  if (input == output) return box_with_whole_axis(inputs[input], output_box, 0);
  Box box = Box::whole(inputs[input]);
  if (input + 1 < static_cast<int>(inputs.size())) box[0] = {};  // another tensor
  return box;
}

Cuts Filter::cuts(std::span<const Shape> inputs) const {
  return inputs.size() == 2 ? cuts_outside(inputs[0].rank(), 0, 0) : Cuts{};
}

}  // namespace cortado
