#pragma once

#include <string>
#include <vector>

#include "cortado/layers/layer_of.h"

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
  static constexpr auto fields =
      std::tuple{field("scale", &TransformOptions::scale),
                 field("mirror", &TransformOptions::mirror),
                 field("crop_size", &TransformOptions::crop_size),
                 field("mean_file", &TransformOptions::mean_file),
                 field("mean_values", &TransformOptions::mean_values),
                 field("force_color", &TransformOptions::force_color),
                 field("force_gray", &TransformOptions::force_gray),
                 field("random_resized_crop", &TransformOptions::random_resized_crop),
                 field("min_area", &TransformOptions::min_area),
                 field("max_area", &TransformOptions::max_area),
                 field("min_aspect", &TransformOptions::min_aspect),
                 field("max_aspect", &TransformOptions::max_aspect),
                 field("brightness", &TransformOptions::brightness),
                 field("contrast", &TransformOptions::contrast),
                 field("saturation", &TransformOptions::saturation),
                 field("mixup_alpha", &TransformOptions::mixup_alpha)};
};

// How WindowData draws windows of images and cuts them out (Girshick et al., "Rich feature hierarchies",
// 2014).
struct WindowOptions {
  double foreground_threshold = 0.5;  // least overlap of a window of a class
  double background_threshold = 0.5;  // of the background a window has less
  double foreground_fraction = 0.25;  // of the samples of a batch
  int context_pad = 0;                // pixels of the crop around the window
  bool square = false;                // crops the smallest square around the window; else warps the window
  bool cache_images = false;          // keeps all files in memory, not decoded
  static constexpr auto fields =
      std::tuple{field("foreground_threshold", &WindowOptions::foreground_threshold),
                 field("background_threshold", &WindowOptions::background_threshold),
                 field("foreground_fraction", &WindowOptions::foreground_fraction),
                 field("context_pad", &WindowOptions::context_pad),
                 field("square", &WindowOptions::square),
                 field("cache_images", &WindowOptions::cache_images)};
};

// How VolumeData reads volumes and what it cuts out of them. Axes are depth, height, width.
struct VolumeOptions {
  enum class Element { uint8, int16, float32 };
  std::vector<int64_t> crop;  // at random, in testing the centre; empty: whole volumes
  std::string mirror;         // those of "dhw" that are mirrored at random
  // Files that are not NIfTI: channels, depth, height, width; empty: there are none.
  std::vector<int64_t> raw_extents;
  Element raw_element = Element::float32, raw_label_element = Element::uint8;
  int64_t raw_offset = 0;  // bytes before the first value
  static constexpr auto fields = std::tuple{field("crop", &VolumeOptions::crop),
                                            field("mirror", &VolumeOptions::mirror),
                                            field("raw_extents", &VolumeOptions::raw_extents),
                                            field("raw_element", &VolumeOptions::raw_element),
                                            field("raw_label_element", &VolumeOptions::raw_label_element),
                                            field("raw_offset", &VolumeOptions::raw_offset)};
};

// Where a source layer's samples come from: Data, ImageData, HDF5Data, MemoryData, DummyData, Input,
// WindowData, VolumeData.
struct SourceOptions {
  enum class Kind { data, image_data, hdf5_data, memory_data, dummy_data, input, window_data, volume_data };
  Kind kind = Kind::data;
  std::string source;       // database folder, list of images, of windows, of volumes, or of HDF5 files
  std::string root_folder;  // image_data, window_data, volume_data
  int batch_size = 0;
  int rand_skip = 0;  // image_data
  bool shuffle = false;
  int new_height = 0, new_width = 0;  // image_data
  bool is_color = true;               // image_data
  bool leveldb = false;               // Data's backend
  bool skip_corrupt = false;          // skip and count broken records instead of stopping
  std::vector<Shape> shapes;          // memory_data (channels, height, width), dummy_data, input
  std::vector<Filler> fillers;        // dummy_data, one per top or one for all
  TransformOptions transform;
  WindowOptions windows;  // window_data
  VolumeOptions volumes;  // volume_data
  static constexpr auto fields = std::tuple{field("kind", &SourceOptions::kind),
                                            field("source", &SourceOptions::source),
                                            field("root_folder", &SourceOptions::root_folder),
                                            field("batch_size", &SourceOptions::batch_size),
                                            field("rand_skip", &SourceOptions::rand_skip),
                                            field("shuffle", &SourceOptions::shuffle),
                                            field("new_height", &SourceOptions::new_height),
                                            field("new_width", &SourceOptions::new_width),
                                            field("is_color", &SourceOptions::is_color),
                                            field("leveldb", &SourceOptions::leveldb),
                                            field("skip_corrupt", &SourceOptions::skip_corrupt),
                                            field("shapes", &SourceOptions::shapes),
                                            unkeyed_field("fillers", &SourceOptions::fillers),
                                            field("transform", &SourceOptions::transform),
                                            field("windows", &SourceOptions::windows),
                                            field("volumes", &SourceOptions::volumes)};
};

// A layer that brings samples in. Its output shapes come from its reader (Network::SourceShapes).
class Source : public LayerOf<SourceOptions> {
 public:
  using LayerOf::LayerOf;
  std::string_view type() const override;
  std::vector<Shape> output_shapes(std::span<const Shape>,
                                   int outputs) const override;  // throws InternalError
  bool is_source() const override { return true; }
};

}  // namespace cortado
