#include "cortado/data/window_crop.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

// One axis of a window that grows. Floats, so that rounding is that of Caffe.
struct GrownAxis {
  int begin = 0, extent = 0;    // of the image
  int before = 0, resized = 0;  // of the sample: pixels outside of the image, then the image's
  int after = 0;                // pixels outside at the other end

  GrownAxis(float centre, float half, int image_extent, int size) {
    const int first = static_cast<int>(std::round(centre - half));
    const int last = static_cast<int>(std::round(centre + half));
    const int outside_before = std::max(0, -first), outside_after = std::max(0, last - image_extent + 1);
    begin = first + outside_before;
    extent = last - outside_after - begin + 1;
    const float scale = static_cast<float>(size) / static_cast<float>(last - first + 1);
    const auto scaled = [&](int pixels) {
      return static_cast<int>(std::round(static_cast<float>(pixels) * scale));
    };
    before = scaled(outside_before);
    after = scaled(outside_after);
    resized = scaled(extent);
  }
};

WindowCrop grown_crop(const ImageWindow& window, int image_height, int image_width,
                      const WindowOptions& options, int size, bool mirrored) {
  const float context = static_cast<float>(size) / static_cast<float>(size - 2 * options.context_pad);
  float half_height = static_cast<float>(window.y2 - window.y1 + 1) / 2;
  float half_width = static_cast<float>(window.x2 - window.x1 + 1) / 2;
  const float centre_y = static_cast<float>(window.y1) + half_height;
  const float centre_x = static_cast<float>(window.x1) + half_width;
  if (options.square) half_height = half_width = std::max(half_height, half_width);
  const GrownAxis rows(centre_y, half_height * context, image_height, size);
  const GrownAxis columns(centre_x, half_width * context, image_width, size);
  WindowCrop crop;
  crop.region = {rows.begin, columns.begin, rows.extent, columns.extent};
  crop.y = rows.before;
  crop.x = mirrored ? columns.after : columns.before;
  crop.height = std::min(rows.resized, size - crop.y);  // rounding may make it a pixel too large
  crop.width = std::min(columns.resized, size - crop.x);
  return crop;
}

}  // namespace

WindowCrop window_crop(const ImageWindow& window, int image_height, int image_width,
                       const WindowOptions& options, int size, bool mirrored) {
  const auto refuse = [&](const char* reason) {
    throw UserError(fmt::format("window {} {} {} {} {}, of {}x{} pixels (height x width)", window.x1,
                                window.y1, window.x2, window.y2, reason, image_height, image_width));
  };
  constexpr int farthest = 1 << 24;  // so that sums stay exact
  if (window.x1 > window.x2 || window.y1 > window.y2) refuse("is empty in its image");
  if (std::max(window.x2, window.y2) > farthest || std::min(window.x1, window.y1) < -farthest)
    refuse("is too far from its image");
  const bool grows = options.context_pad > 0 || options.square;
  if (grows) {
    constexpr double largest = 1e9;  // so that what it grows to fits an int
    if (static_cast<double>(std::max(window.x2 - window.x1, window.y2 - window.y1) + 1) * size > largest)
      refuse("is too large");
    const WindowCrop crop = grown_crop(window, image_height, image_width, options, size, mirrored);
    if (crop.region.height < 1 || crop.region.width < 1) refuse("lies outside of its image");
    return crop;
  }
  if (window.x1 < 0 || window.y1 < 0 || window.x2 >= image_width || window.y2 >= image_height)
    refuse("lies partly outside of its image");
  return {.region = {window.y1, window.x1, window.y2 - window.y1 + 1, window.x2 - window.x1 + 1},
          .height = size,
          .width = size};
}

}  // namespace cortado
