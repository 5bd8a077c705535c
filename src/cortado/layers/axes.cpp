#include "cortado/layers/axes.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

AxisView::AxisView(const Shape& shape, int axis) {
  axis = shape.canonical_axis(axis);
  before = shape.count(0, axis);
  extent = shape[axis];
  behind = shape.count(axis + 1);
}

void check_labels(const Shape& scores, int axis, const Shape& labels) {
  AxisView view(scores, axis);
  if (labels.size() == view.before * view.behind) return;
  throw UserError(
      fmt::format("needs one label for each of the {} positions of scores {} outside axis {}, but the labels "
                  "have shape {}",
                  view.before * view.behind, scores.text(), axis, labels.text()));
}

void check_same_samples(const Shape& a, const Shape& b) {
  if (a.rank() > 0 && b.rank() > 0 && a[0] == b[0] && a.count(1) == b.count(1)) return;
  throw UserError(
      fmt::format("needs two inputs of as many samples and as many elements a sample, has {} and {}",
                  a.text(), b.text()));
}

Box box_with_whole_axis(const Shape& input, const Box& output_box, int axis) {
  Box box = output_box;
  axis = input.canonical_axis(axis);
  box[axis] = {0, input[axis]};
  return box;
}

Box box_of_leading_axes(const Shape& input, const Box& output_box, int axes) {
  Box box = Box::whole(input);
  for (int axis = 0; axis < axes; ++axis) box[axis] = output_box[axis];
  return box;
}

Cuts cuts_outside(int rank, int begin, int end) {
  auto cuttable = [&](int axis) { return axis < rank && (axis < begin || axis >= end); };
  Cuts cuts;
  cuts.n = cuttable(0);
  cuts.c = cuttable(1);
  if (rank > 5) return cuts;
  cuts.w = rank >= 3 && cuttable(rank - 1);
  cuts.h = rank >= 4 && cuttable(rank - 2);
  cuts.d = rank >= 5 && cuttable(rank - 3);
  return cuts;
}

}  // namespace cortado
