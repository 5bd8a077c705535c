#include "cortado/layers/axes.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

AxisView::AxisView(const Shape& shape, int axis) {
  axis = shape.canonical_axis(axis);
  before = shape.count(0, axis);
  extent = shape[axis];
  after = shape.count(axis + 1);
}

void check_labels(const Shape& scores, int axis, const Shape& labels) {
  AxisView view(scores, axis);
  if (labels.size() == view.before * view.after) return;
  throw UserError(
      fmt::format("needs one label for each of the {} positions of scores {} outside axis {}, but the labels "
                  "have shape {}",
                  view.before * view.after, scores.text(), axis, labels.text()));
}

void check_sample_labels(const Shape& scores, const Shape& labels) {
  scores.canonical_axis(0);
  if (labels.size() == scores[0]) return;
  throw UserError(
      fmt::format("needs one label for each of the {} samples of scores {}, but the labels have shape {}",
                  scores[0], scores.text(), labels.text()));
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

namespace {

// Returns, for each axis of the scores, the axis of the labels along which its positions lie; -1: none.
std::vector<int> label_axes(const Shape& scores, int axis, const Shape& labels) {
  axis = scores.canonical_axis(axis);
  std::vector<int> axes(scores.rank(), -1);
  int next = 0;
  for (int a = 0; a < scores.rank(); ++a) {
    if (a == axis || scores[a] == 1) continue;
    while (next < labels.rank() && labels[next] == 1) ++next;
    if (next == labels.rank() || labels[next] != scores[a]) {
      std::fill(axes.begin(), axes.end(), -1);
      if (axis != 0 && labels.rank() > 0 && labels[0] == scores[0]) axes[0] = 0;
      return axes;
    }
    axes[a] = next++;
  }
  return axes;
}

}  // namespace

Box label_box(const Shape& scores, int axis, const Shape& labels, const Box& part) {
  Box box = Box::whole(labels);
  std::vector<int> axes = label_axes(scores, axis, labels);
  for (int a = 0; a < scores.rank(); ++a) {
    if (axes[a] >= 0) box[axes[a]] = part[a];
  }
  return box;
}

Cuts sample_label_cuts(const Shape& scores, const Shape& labels) {
  return {.n = labels.rank() > 0 && labels[0] == scores[0]};
}

Cuts label_cuts(const Shape& scores, int axis, const Shape& labels) {
  axis = scores.canonical_axis(axis);
  std::vector<int> axes = label_axes(scores, axis, labels);
  Cuts cuts = cuts_outside(scores.rank(), 0, 0);
  const int rank = scores.rank();
  auto follows = [&](int a) { return a >= 0 && a < rank && (a == axis || axes[a] >= 0); };
  cuts.n = cuts.n && follows(0);
  cuts.c = cuts.c && follows(1);
  cuts.d = cuts.d && follows(rank - 3);
  cuts.h = cuts.h && follows(rank - 2);
  cuts.w = cuts.w && follows(rank - 1);
  return cuts;
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
