#pragma once

#include <string>
#include <vector>

#include "cortado/layers/layer.h"

namespace cortado {

// Caffe's transforms (TransformationParameter) and Cortado's own augmentations. Order: decode, resize or
// random-resized crop, colour jitter, crop (random in training, centre in testing), mirror, subtract mean,
// scale, MixUp.
struct TransformOptions {
  double scale = 1;
  bool mirror = false;
  int crop_size = 0;
  std::string mean_file;            // binaryproto; excludes mean_values
  std::vector<double> mean_values;  // one, or one per channel
  bool force_color = false, force_gray = false;
  // Cortado's own (fields above Caffe's numbers, docs/reference/data.md):
  bool random_resized_crop = false;  // needs crop_size
  double min_area = 0.08, max_area = 1, min_aspect = 0.75, max_aspect = 4.0 / 3;
  double brightness = 0, contrast = 0, saturation = 0;  // jitter: factor uniform in [1-x, 1+x]
  double mixup_alpha = 0;                               // Beta(alpha, alpha); 0: off
  bool operator==(const TransformOptions&) const = default;
};

// Where a source layer's samples come from: Data, ImageData, HDF5Data, MemoryData, DummyData, Input.
struct SourceOptions {
  enum class Kind { data, image_data, hdf5_data, memory_data, dummy_data, input };
  Kind kind = Kind::data;
  std::string source;       // database folder, image list, or list of HDF5 files
  std::string root_folder;  // image_data
  int batch_size = 0;
  int rand_skip = 0;  // image_data
  bool shuffle = false;
  int new_height = 0, new_width = 0;  // image_data
  bool is_color = true;               // image_data
  bool leveldb = false;               // Data's backend (refused by the reader with a reason)
  bool skip_corrupt = false;          // skip and count broken records instead of stopping
  std::vector<Shape> shapes;          // memory_data (channels, height, width), dummy_data, input
  std::vector<Filler> fillers;        // dummy_data, one per top or one for all
  TransformOptions transform;
  bool operator==(const SourceOptions&) const = default;
};

// A layer that brings samples in. Its output shapes come from its reader (Network::SourceShapes).
class Source : public Layer {
 public:
  explicit Source(SourceOptions options) : options_(std::move(options)) {}
  const SourceOptions& options() const { return options_; }
  std::string_view type() const override;
  std::vector<Shape> output_shapes(std::span<const Shape>,
                                   int outputs) const override;  // throws InternalError
  bool is_source() const override { return true; }

 private:
  SourceOptions options_;
};

}  // namespace cortado
