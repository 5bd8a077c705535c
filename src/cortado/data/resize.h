#pragma once

#include "cortado/data/image.h"

namespace cortado {

// A rectangle of pixels.
struct Region {
  int y = 0, x = 0, height = 0, width = 0;
  bool operator==(const Region&) const = default;
};

// linear: weights of the two nearest pixels whatever the scale, as OpenCV's INTER_LINEAR (what Caffe resizes
// with). antialiased: a triangle as wide as the shrinking factor, so that no pixel is left out.
enum class ResizeFilter { linear, antialiased };

// The region of `image`, scaled to height x width. Pixel centres lie at (i + 1/2) * scale - 1/2; outside the
// region its border repeats.
Image resize(const Image& image, const Region& region, int height, int width, ResizeFilter filter);
inline Image resize(const Image& image, int height, int width, ResizeFilter filter = ResizeFilter::linear) {
  return resize(image, {0, 0, image.height, image.width}, height, width, filter);
}

}  // namespace cortado
