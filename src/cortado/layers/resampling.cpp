#include "cortado/layers/resampling.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"
#include "cortado/layers/window.h"

namespace cortado {
namespace {

AxisResampling resampled(const UpsampleOptions& options, std::span<const Shape> inputs, int axis) {
  if (options.scale < 1) throw UserError(fmt::format("scale is {}, must be positive", options.scale));
  AxisResampling result;
  result.extent = inputs[0][axis];
  result.outputs = result.extent * options.scale;
  result.nearest = options.mode == UpsampleOptions::Mode::nearest;
  result.step = result.nearest ? 1 : 2;
  result.offset = result.nearest ? 0 : 1 - options.scale;
  result.divisor = options.scale * result.step;
  return result;
}

// Refuses options that give the output's extents twice or not at all.
void check_one_rule(const InterpOptions& options, bool reference) {
  const bool factors = options.zoom_factor != 0 || options.shrink_factor != 0;
  const bool extents = options.height != 0 || options.width != 0;
  if (factors + extents + reference != 1)
    throw UserError("give one of zoom_factor or shrink_factor, height and width, or a second input");
  if (extents && (options.height < 1 || options.width < 1))
    throw UserError("height and width must be given together and be positive");
  if (options.zoom_factor < 0 || options.shrink_factor < 0)
    throw UserError(fmt::format("zoom_factor {} and shrink_factor {} must be positive", options.zoom_factor,
                                options.shrink_factor));
}

int64_t interp_extent(const InterpOptions& options, std::span<const Shape> inputs, int axis, int64_t left) {
  if (inputs.size() == 2) return inputs[1][axis];
  if (options.height != 0) return axis == 2 ? options.height : options.width;
  if (options.shrink_factor > 0) left = (left - 1) / options.shrink_factor + 1;
  return options.zoom_factor > 0 ? (left - 1) * options.zoom_factor + 1 : left;
}

AxisResampling resampled(const InterpOptions& options, std::span<const Shape> inputs, int axis) {
  AxisResampling result;
  result.begin = -options.pad_begin;
  result.extent = inputs[0][axis] + options.pad_begin + options.pad_end;
  if (result.extent < 1)
    throw UserError(fmt::format("pad_beg {} and pad_end {} leave nothing of axis {} of {}", options.pad_begin,
                                options.pad_end, axis, inputs[0].text()));
  result.outputs = interp_extent(options, inputs, axis, result.extent);
  if (result.outputs > 1) {
    result.step = result.extent - 1;
    result.divisor = result.outputs - 1;
  }
  return result;
}

void check_inputs(const UpsampleOptions&, std::span<const Shape> inputs) {
  check_count("inputs", inputs.size(), 1, 1);
  check_spatial(inputs[0]);
}

void check_inputs(const InterpOptions& options, std::span<const Shape> inputs) {
  check_count("inputs", inputs.size(), 1, 2);
  check_spatial(inputs[0]);
  check_one_rule(options, inputs.size() == 2);
  if (options.height != 0 && inputs[0].rank() != 4)
    throw UserError(fmt::format("height and width are for images of four axes, not for {}; use zoom_factor",
                                inputs[0].text()));
  if (options.pad_begin > 0 || options.pad_end > 0)
    throw UserError(
        fmt::format("pad_beg {} and pad_end {} must not be positive", options.pad_begin, options.pad_end));
  if (inputs.size() == 2 && inputs[1].rank() != inputs[0].rank())
    throw UserError(fmt::format("the second input {} has other axes than the first, {}", inputs[1].text(),
                                inputs[0].text()));
}

}  // namespace

Neighbours AxisResampling::neighbours(int64_t output) const {
  const int64_t place = std::max<int64_t>(0, output * step + offset);
  const int64_t first = std::min(place / divisor, extent - 1);
  const bool between = !nearest && first + 1 < extent;
  return {begin + first, between ? static_cast<double>(place % divisor) / static_cast<double>(divisor) : 0};
}

std::string_view Resampling::type() const {
  return std::visit([](const auto& options) { return options.type; }, options_);
}

std::vector<AxisResampling> Resampling::axes(std::span<const Shape> inputs) const {
  return std::visit(
      [&](const auto& options) {
        check_inputs(options, inputs);
        std::vector<AxisResampling> axes;
        for (int axis = 2; axis < inputs[0].rank(); ++axis) axes.push_back(resampled(options, inputs, axis));
        return axes;
      },
      options_);
}

std::vector<Shape> Resampling::output_shapes(std::span<const Shape> inputs, int outputs) const {
  check_count("output", outputs, 1, 1);
  const std::vector<AxisResampling> resamplings = axes(inputs);
  Shape output{inputs[0][0], inputs[0][1]};
  for (const AxisResampling& axis : resamplings) output.append(axis.outputs);
  return {output};
}

Box Resampling::input_box(std::span<const Shape> inputs, int input, int, const Box& output_box) const {
  if (input == 1) return Box::whole(Shape(std::vector<int64_t>(inputs[1].rank(), 0)));
  const std::vector<AxisResampling> resamplings = axes(inputs);
  Box box = output_box;
  for (size_t i = 0; i < resamplings.size(); ++i) {
    Range& range = box[static_cast<int>(i) + 2];
    if (range.size() == 0) continue;
    range = {resamplings[i].neighbours(range.begin).first, resamplings[i].neighbours(range.end - 1).end()};
  }
  return box;
}

Cuts Resampling::cuts(std::span<const Shape>) const { return Cuts::pointwise(); }

Flops Resampling::forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const {
  const bool nearest = axes(inputs).front().nearest;
  return {nearest ? 0 : 3.0 * std::pow(2.0, inputs[0].rank() - 2) * static_cast<double>(outputs[0].size())};
}

}  // namespace cortado
