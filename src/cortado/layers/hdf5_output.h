#pragma once

#include <string>

#include "cortado/layers/layer_of.h"

namespace cortado {

struct Hdf5OutputOptions {
  std::string file_name;
  static constexpr auto fields = std::tuple{field("file_name", &Hdf5OutputOptions::file_name)};
};

// Appends its two inputs, batch by batch, to the data sets "data" and "label" of an HDF5 file that it makes
// anew; these have four axes at least, the last ones 1 where an input has fewer. No outputs.
class Hdf5Output : public LayerOf<Hdf5OutputOptions> {
 public:
  explicit Hdf5Output(Hdf5OutputOptions options);
  std::string_view type() const override { return "HDF5Output"; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  bool differentiable(int) const override { return false; }
  bool writes_files() const override { return true; }
  OutputRule output_rule(int) const override { return OutputRule::f32; }
};

}  // namespace cortado
