#pragma once

#include "cortado/layers/layer.h"

namespace cortado {

// A tensor seen around one axis: the extents before it, its own, and those after it, each multiplied
// together. In spoken row-major order element (i, c, j) has index (i * extent + c) * after + j.
struct AxisView {
  int64_t before = 1, extent = 1, after = 1;
  AxisView() = default;
  AxisView(const Shape& shape, int axis);  // negative axes count from the end
};

// Throws UserError unless there is one label for every position outside the class axis of the scores.
void check_labels(const Shape& scores, int axis, const Shape& labels);

// Throws UserError unless there is one label for each sample of the scores.
void check_sample_labels(const Shape& scores, const Shape& labels);

// Throws UserError unless both have equally many samples, which hold equally many elements.
void check_same_samples(const Shape& a, const Shape& b);

// Returns the input's box for a layer that computes each part of the output from the same part of the input
// along all axes but `axis`, of which it reads everything.
Box box_with_whole_axis(const Shape& input, const Box& output_box, int axis);

// Returns the input's box for a layer whose output has the input's leading `axes` axes: those of the output
// box, the others whole.
Box box_of_leading_axes(const Shape& input, const Box& output_box, int axes);

// Labels: one for every position of the scores outside the class axis. The part of the labels that belongs to
// a part of the scores, and the cuts of the scores that the shape of the labels follows: the classes, samples
// and space outside the class axis where the labels have the same axes (not counting those of extent 1), else
// the samples and classes alone.
Box label_box(const Shape& scores, int axis, const Shape& labels, const Box& part);
Cuts label_cuts(const Shape& scores, int axis, const Shape& labels);
// The same of labels of which each sample of the scores has one.
Cuts sample_label_cuts(const Shape& scores, const Shape& labels);

// All cuts of a tensor of that rank except along the axes [begin, end). Axis 0 is n, axis 1 c, the last one
// w, the one before it h, then d; tensors of more than five axes are not cut after the channels.
Cuts cuts_outside(int rank, int begin, int end);

}  // namespace cortado
