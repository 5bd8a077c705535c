#pragma once

#include <string>
#include <vector>

#include "cortado/base/shape.h"
#include "cortado/data/crop.h"

namespace cortado {

// How an image of any size becomes the input of a trained net.
struct PreprocessOptions {
  std::string mean_file;            // binaryproto: the mean of each of its channels; excludes mean_values
  std::vector<double> mean_values;  // one, or one per channel
  double scale = 1;                 // of what is left after the mean
  int resize_height = 0, resize_width = 0;  // before the centre is taken; 0: the input's own
  bool oversample = false;                  // ten crops in place of the centre; needs a resize
};

// Does what Caffe's classification example does: converts to the input's channels (grey or blue, green, red),
// resizes bilinearly, subtracts the channels' means. Where it is resized to more than the input, the centre
// is taken or, oversampled, the four corners and the centre, then these five mirrored. Any thread may use it.
class Preprocessor {
 public:
  // `input`: channels, height, width. Throws UserError: other channels than 1 or 3, a mean of other channels,
  // a resize to less than the input.
  Preprocessor(const PreprocessOptions& options, const Shape& input);

  int crops() const { return options_.oversample ? 10 : 1; }  // of each image
  Shape output_shape() const { return {channels_, height_, width_}; }

  // Writes crops() times height x width x channels values. Throws UserError on floats that would have to be
  // converted or resized.
  void apply(const PixelView& pixels, float* output) const;

 private:
  void write_crops(const PixelView& pixels, float* output) const;

  PreprocessOptions options_;
  int channels_ = 0, height_ = 0, width_ = 0;  // of the output
  int resize_height_ = 0, resize_width_ = 0;
  std::vector<float> mean_row_;  // channel means repeated over a row of the output; empty: none
};

}  // namespace cortado
