#pragma once

#include <optional>

#include "cortado/base/random.h"
#include "cortado/data/crop.h"
#include "cortado/data/mean.h"
#include "cortado/layers/source.h"

namespace cortado {

// Caffe's DataTransformer and Cortado's augmentations (layers/source.h gives the order), but MixUp, which
// needs the whole batch. In testing a random-resized crop becomes: the centred square of 7/8 of the shorter
// side, resized (as resizing to 256 and cropping 224). Writes (pixel - mean) * scale, channels last.
class Transformer {
 public:
  // `channels`, `height`, `width`: the data set's first sample, which fixes the output's shape. Throws
  // UserError: crop larger than the image, mean of another shape, contradicting options.
  Transformer(const TransformOptions& options, Phase phase, const RandomStream& stream, int channels,
              int height, int width);

  Shape output_shape() const { return {channels_, height_, width_}; }

  // Transforms the sample at stream position `sample`. Throws UserError when its size does not fit.
  void apply(const PixelView& pixels, int64_t sample, float* output) const;

 private:
  void check(const PixelView& pixels) const;
  bool jitters() const;
  Image resized_crop(const Image& image, int64_t sample) const;
  void crop_and_normalize(const PixelView& pixels, int64_t sample, float* output) const;

  TransformOptions options_;
  Phase phase_;
  RandomStream stream_;
  int channels_ = 0, height_ = 0, width_ = 0;  // of the output
  std::optional<MeanImage> mean_;
  std::vector<float> mean_row_;  // mean_values repeated over one output row; empty: none
};

// The color mode in which encoded images are to be decoded (force_color, force_gray).
ColorMode color_mode(const TransformOptions& options);

}  // namespace cortado
