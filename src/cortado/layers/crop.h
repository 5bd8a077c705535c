#pragma once

#include <vector>

#include "cortado/layers/layer_of.h"

namespace cortado {

struct CropOptions {
  int axis = 2;                 // first axis cropped
  std::vector<int64_t> offset;  // none: 0; one: for every cropped axis; else one per cropped axis
  static constexpr auto fields =
      std::tuple{field("axis", &CropOptions::axis), field("offset", &CropOptions::offset)};
};

// The part of input 0 that has the extents of input 1 (whose values are not read) along the axes from `axis`.
class Crop : public LayerOf<CropOptions> {
 public:
  explicit Crop(CropOptions options);
  std::string_view type() const override { return "Crop"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  Cuts cuts(std::span<const Shape> inputs) const override;
  bool differentiable(int input) const override { return input == 0; }
  // Offset of the output in the input along each axis; 0 before the first cropped one.
  std::vector<int64_t> offsets(const Shape& input) const;
};

}  // namespace cortado
