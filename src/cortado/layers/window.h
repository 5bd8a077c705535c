#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "cortado/base/box.h"

namespace cortado {

// A sliding window along one spatial axis, of convolution, deconvolution and pooling.
// Window o covers the positions o*stride - pad + k*dilation, k in [0, kernel), of the image.
struct WindowAxis {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t pad = 0;  // on both sides
  int64_t dilation = 1;

  int64_t extent() const { return dilation * (kernel - 1) + 1; }
  int64_t first(int64_t window) const { return window * stride - pad; }
  bool operator==(const WindowAxis&) const = default;
};

// One WindowAxis per spatial axis: (D,) H, W.
using Window = std::vector<WindowAxis>;

// Rounding of the number of windows. `down` counts those that lie inside the padded image; `up` lets one more
// run over its end, and even start after it where the stride is larger than the kernel; `up_inside` leaves
// out a window that would start after the image.
enum class Rounding { up, up_inside, down };

// Number of windows on an image axis of `image` positions. Throws UserError when no window fits.
int64_t window_count(int64_t image, const WindowAxis& axis, Rounding rounding = Rounding::down);

// The image positions that windows `windows` read: the smallest range holding them, clipped to [0, image).
Range window_reads(Range windows, const WindowAxis& axis, int64_t image);

// The part of an image axis that the task of windows `part`, of `all`, has: what they read; of all windows
// the whole axis, so that a tensor that nobody cuts is not copied for positions that no window reads.
Range window_image(Range part, int64_t all, const WindowAxis& axis, int64_t image);

// Number of positions that `windows` windows write when they are spread instead of read (deconvolution):
// stride*(windows-1) + extent - 2*pad. Throws UserError when that is not positive.
int64_t spread_extent(int64_t windows, const WindowAxis& axis);

// The windows, out of [0, windows), that write into `positions` when spread: the smallest range holding them.
Range spread_reads(Range positions, const WindowAxis& axis, int64_t windows);

using PerAxis = std::array<int64_t, Shape::max_rank>;
// Resolves options given once for all axes or once per axis; the first `axes` values count. `fallback` stands
// where none is given (pass -1 for "required"). Throws UserError, naming `what`, on a wrong count or a value
// below `minimum`.
PerAxis per_axis(std::string_view what, const std::vector<int64_t>& given, int axes, int64_t fallback,
                 int64_t minimum);

// Throws UserError unless a tensor has a batch, a channel and one to three spatial axes.
void check_spatial(const Shape& shape);

}  // namespace cortado
