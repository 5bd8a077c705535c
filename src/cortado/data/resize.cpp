#include "cortado/data/resize.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <new>

namespace cortado {

namespace {

// The inputs that each output index weighs: `count` from `first`, with weights that sum to 1.
struct Taps {
  int count = 0;
  std::vector<int> first;
  std::vector<float> weights;  // count each
};

Taps make_taps(int input, int output, ResizeFilter filter) {
  const double scale = static_cast<double>(input) / output;
  const double support = filter == ResizeFilter::antialiased ? std::max(1.0, scale) : 1.0;
  Taps taps;
  taps.count = std::min(input, static_cast<int>(std::ceil(2 * support)) + 1);
  taps.first.resize(output);
  taps.weights.assign(size_t{1} * output * taps.count, 0.0f);
  std::vector<double> triangle(taps.count);
  for (int i = 0; i < output; ++i) {
    double center = (i + 0.5) * scale - 0.5;
    if (filter == ResizeFilter::linear) center = std::clamp(center, 0.0, input - 1.0);
    const int first = std::clamp(static_cast<int>(std::floor(center - support)) + 1, 0, input - taps.count);
    double sum = 0;
    for (int k = 0; k < taps.count; ++k)
      sum += triangle[k] = std::max(0.0, 1 - std::abs(first + k - center) / support);
    for (int k = 0; k < taps.count; ++k)
      taps.weights[size_t{1} * i * taps.count + k] = static_cast<float>(triangle[k] / sum);
    taps.first[i] = first;
  }
  return taps;
}

template <int Channels>
void resize_row(const uint8_t* from, const Taps& taps, int width, float* to) {
  const float* weight = taps.weights.data();
  for (int x = 0; x < width; ++x, weight += taps.count, to += Channels) {
    const uint8_t* pixel = from + taps.first[x] * Channels;
    float sum[Channels] = {};
    for (int k = 0; k < taps.count; ++k, pixel += Channels)
      for (int c = 0; c < Channels; ++c) sum[c] += weight[k] * pixel[c];
    for (int c = 0; c < Channels; ++c) to[c] = sum[c];
  }
}

void resize_row(const uint8_t* from, int channels, const Taps& taps, int width, float* to) {
  switch (channels) {
    case 1:
      return resize_row<1>(from, taps, width, to);
    case 3:
      return resize_row<3>(from, taps, width, to);
    default:
      return resize_row<4>(from, taps, width, to);
  }
}

// Columns first, into a window of float rows that slides down the image; then rows.
Image resized(const Image& image, const Region& region, int height, int width, ResizeFilter filter) {
  const Taps columns = make_taps(region.width, width, filter);
  const Taps rows = make_taps(region.height, height, filter);
  Image result(height, width, image.channels);
  const size_t row_floats = result.row_bytes();
  std::vector<float> window(rows.count * row_floats), sum(row_floats);
  int ready = 0;  // rows of the region resized so far; row r lies in window slot r % count
  for (int y = 0; y < height; ++y) {
    const int first = rows.first[y];
    for (ready = std::max(ready, first); ready < first + rows.count; ++ready)
      resize_row(image.row(region.y + ready) + region.x * image.channels, image.channels, columns, width,
                 &window[(ready % rows.count) * row_floats]);
    std::fill(sum.begin(), sum.end(), 0.5f);
    for (int k = 0; k < rows.count; ++k) {
      const float weight = rows.weights[size_t{1} * y * rows.count + k];
      if (weight == 0) continue;
      const float* row = &window[((first + k) % rows.count) * row_floats];
      for (size_t i = 0; i < row_floats; ++i) sum[i] += weight * row[i];
    }
    uint8_t* to = result.row(y);
    for (size_t i = 0; i < row_floats; ++i) to[i] = static_cast<uint8_t>(std::min(sum[i], 255.0f));
  }
  return result;
}

}  // namespace

Image resize(const Image& image, const Region& region, int height, int width, ResizeFilter filter) {
  try {
    return resized(image, region, height, width, filter);
  } catch (const std::bad_alloc&) {
    throw UserError(
        fmt::format("resizing an image to {}x{}: the system does not give the {:.1f} MiB that it takes; give "
                    "a smaller size",
                    height, width, static_cast<double>(height) * width * image.channels / (1 << 20)));
  }
}

}  // namespace cortado
