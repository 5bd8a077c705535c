#pragma once

#include "cortado/data/image.h"
#include "cortado/data/resize.h"

namespace cortado {

// Borrowed pixels of one sample: bytes or floats, interleaved (HWC) or planar (CHW).
struct PixelView {
  const uint8_t* bytes = nullptr;
  const float* floats = nullptr;
  int channels = 0, height = 0, width = 0;
  bool planar = false;
  PixelView() = default;
  PixelView(const Image& image)
      : bytes(image.pixels.data()), channels(image.channels), height(image.height), width(image.width) {}
};

// A copy of pixels that are bytes.
Image image_of(const PixelView& pixels);

// What is subtracted from pixels: nothing, the mean of each channel, or a mean image as large as the sample.
struct CropMean {
  const float* image = nullptr;  // height, width, channels, of the whole sample
  const float* row = nullptr;    // the channels' means, repeated for each pixel of a row of the crop
};

// Writes (pixel - mean) * scale of a rectangle that lies within the sample, channels last; each row from
// right to left when `mirrored`.
void write_crop(const PixelView& pixels, const Region& crop, bool mirrored, const CropMean& mean, float scale,
                float* output);

}  // namespace cortado
