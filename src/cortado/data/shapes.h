#pragma once

#include "cortado/data/image.h"

namespace cortado {

// The generated data set: one drawn shape an image, which is its class, at a random place, angle and size,
// in colours that say nothing of the class (darker or lighter than the ground), on a shaded and noisy ground,
// sometimes partly hidden. Pixels alone are nearly uncorrelated with the class, so a linear model does badly;
// a small convolutional net does well (docs/results/exactness.md has the figures).
struct ShapesOptions {
  uint64_t seed = 1;
  int classes = 10;  // at most shape_names().size()
  int size = 32;     // pixels a side
};

std::span<const std::string_view> shape_names();

struct LabelledImage {
  Image image;
  int label = 0;
};

// Throws UserError unless 2 <= classes <= shape_names().size() and 16 <= size <= 512.
void check_shapes_options(const ShapesOptions& options);

// Image `index` of the endless data set, a pure function of (options, index). Labels run through the classes
// in blocks of `classes` images, each block in an order of its own.
LabelledImage draw_shape(const ShapesOptions& options, int64_t index);

}  // namespace cortado
