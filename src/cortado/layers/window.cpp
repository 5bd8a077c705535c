#include "cortado/layers/window.h"

#include <fmt/format.h>
#include <limits>

#include "cortado/base/error.h"

namespace cortado {
namespace {

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0); }
int64_t ceil_divide(int64_t a, int64_t b) { return -floor_divide(-a, b); }

// Smallest position of the image that the windows read; `image` when they read none.
int64_t first_read(Range windows, const WindowAxis& axis, int64_t image) {
  int64_t best = image;
  for (int64_t w = windows.begin; w < windows.end; ++w) {
    int64_t start = axis.first(w);
    if (start >= 0) return std::min(best, start);
    int64_t tap = ceil_divide(-start, axis.dilation);
    if (tap < axis.kernel) best = std::min(best, start + tap * axis.dilation);
    if (best == 0) return 0;
  }
  return best;
}

// One past the largest position of the image that the windows read; 0 when they read none.
int64_t last_read(Range windows, const WindowAxis& axis, int64_t image) {
  int64_t best = 0;
  for (int64_t w = windows.end - 1; w >= windows.begin; --w) {
    int64_t start = axis.first(w);
    if (start + axis.extent() <= image) return std::max(best, start + axis.extent());
    int64_t tap = floor_divide(image - 1 - start, axis.dilation);
    if (tap >= 0) best = std::max(best, start + tap * axis.dilation + 1);
    if (best == image) return image;
  }
  return best;
}

}  // namespace

int64_t window_count(int64_t image, const WindowAxis& axis, Rounding rounding) {
  int64_t room = image + 2 * axis.pad - axis.extent();
  int64_t count;
  if (rounding == Rounding::down) {
    count = floor_divide(room, axis.stride) + 1;
  } else {
    count = ceil_divide(room, axis.stride) + 1;
    if (rounding == Rounding::up_inside && axis.first(count - 1) >= image) --count;
  }
  if (image < 1 || count < 1) {
    throw UserError(
        fmt::format("a window of {} positions does not fit an axis of {} padded by {} on both sides; use a "
                    "smaller kernel, a larger input or more padding",
                    axis.extent(), image, axis.pad));
  }
  return count;
}

Range window_reads(Range windows, const WindowAxis& axis, int64_t image) {
  if (windows.size() == 0) return {};
  Range reads{first_read(windows, axis, image), last_read(windows, axis, image)};
  return reads.size() == 0 ? Range{} : reads;
}

Range window_image(Range part, int64_t all, const WindowAxis& axis, int64_t image) {
  return part == Range{0, all} ? Range{0, image} : window_reads(part, axis, image);
}

int64_t spread_extent(int64_t windows, const WindowAxis& axis) {
  int64_t extent = axis.stride * (windows - 1) + axis.extent() - 2 * axis.pad;
  if (windows < 1 || extent < 1) {
    throw UserError(
        fmt::format("padding {} leaves nothing of a deconvolution's output of {} positions; use less",
                    axis.pad, extent + 2 * axis.pad));
  }
  return extent;
}

Range spread_reads(Range positions, const WindowAxis& axis, int64_t windows) {
  Range reads{windows, 0};
  for (int64_t k = 0; k < axis.kernel; ++k) {
    int64_t offset = axis.pad - k * axis.dilation;
    int64_t begin = std::max<int64_t>(0, ceil_divide(positions.begin + offset, axis.stride));
    int64_t end = std::min(windows, floor_divide(positions.end - 1 + offset, axis.stride) + 1);
    if (begin >= end) continue;
    reads = {std::min(reads.begin, begin), std::max(reads.end, end)};
  }
  return reads.size() == 0 ? Range{} : reads;
}

PerAxis per_axis(std::string_view what, const std::vector<int64_t>& given, int axes, int64_t fallback,
                 int64_t minimum) {
  if (given.empty() && fallback < 0) throw UserError(fmt::format("{} is not given", what));
  if (given.size() > 1 && static_cast<int>(given.size()) != axes) {
    throw UserError(fmt::format("{} has {} values for {} spatial axes; give one, or one per axis", what,
                                given.size(), axes));
  }
  PerAxis values{};
  for (int axis = 0; axis < axes; ++axis) {
    int64_t& value = values[static_cast<size_t>(axis)];
    value = given.empty() ? fallback : given[given.size() > 1 ? static_cast<size_t>(axis) : 0];
    if (value < minimum || value > std::numeric_limits<int32_t>::max()) {
      throw UserError(fmt::format("{} is {}, must be at least {}", what, value, minimum));
    }
  }
  return values;
}

void check_spatial(const Shape& shape) {
  if (shape.rank() < 3 || shape.rank() > 5) {
    throw UserError(
        fmt::format("input of shape {} must have a batch axis, a channel axis and one to three spatial axes",
                    shape.text()));
  }
}

}  // namespace cortado
