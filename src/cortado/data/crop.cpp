#include "cortado/data/crop.h"

#include <algorithm>

namespace cortado {

namespace {

// to[i] = (from[i] - mean[i]) * scale for interleaved pixels; `mean` may be null.
template <typename T>
void normalize(const T* from, const float* mean, float scale, int count, float* to) {
  if (mean)
    for (int i = 0; i < count; ++i) to[i] = (from[i] - mean[i]) * scale;
  else
    for (int i = 0; i < count; ++i) to[i] = from[i] * scale;
}

// The same for planar pixels, planes `plane` apart, to interleaved ones.
template <typename T>
void normalize_planar(const T* from, int64_t plane, const float* mean, float scale, int channels, int width,
                      float* to) {
  for (int c = 0; c < channels; ++c, from += plane)
    for (int x = 0, i = c; x < width; ++x, i += channels) to[i] = (from[x] - (mean ? mean[i] : 0.0f)) * scale;
}

// Mirrors a row of pixels in place.
void reverse_pixels(float* row, int channels, int width) {
  for (int left = 0, right = width - 1; left < right; ++left, --right)
    std::swap_ranges(row + left * channels, row + (left + 1) * channels, row + right * channels);
}

}  // namespace

Image image_of(const PixelView& pixels) {
  Image image(pixels.height, pixels.width, pixels.channels);
  const int plane = pixels.height * pixels.width;
  for (int c = 0; c < pixels.channels; ++c)
    for (int i = 0; i < plane; ++i)
      image.pixels[i * pixels.channels + c] =
          pixels.planar ? pixels.bytes[c * plane + i] : pixels.bytes[i * pixels.channels + c];
  return image;
}

void write_crop(const PixelView& pixels, const Region& crop, bool mirrored, const CropMean& mean, float scale,
                float* output) {
  const int channels = pixels.channels;
  const int64_t plane = int64_t{pixels.height} * pixels.width;
  for (int y = 0; y < crop.height; ++y) {
    const int64_t first = int64_t{crop.y + y} * pixels.width + crop.x;  // pixel
    const float* mean_row = mean.image ? mean.image + first * channels : mean.row;
    float* row = output + int64_t{y} * crop.width * channels;
    auto write = [&](const auto* source) {
      if (pixels.planar && channels > 1)
        normalize_planar(source + first, plane, mean_row, scale, channels, crop.width, row);
      else
        normalize(source + first * channels, mean_row, scale, crop.width * channels, row);
    };
    if (pixels.bytes)
      write(pixels.bytes);
    else
      write(pixels.floats);
    if (mirrored) reverse_pixels(row, channels, crop.width);
  }
}

}  // namespace cortado
