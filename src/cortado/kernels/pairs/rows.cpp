#include "cortado/kernels/pairs/rows.h"

namespace cortado::pairs {

bool Rows::dense() const {
  int64_t below = channels;
  for (int i = 3; i >= 0; --i) {
    if (extent[i] > 1 && stride[i] != below) return false;
    below *= extent[i];
  }
  return first == 0;
}

int64_t Rows::at(int64_t row) const {
  int64_t element = first;
  for (int i = 3; i >= 0; --i) {
    element += row % extent[i] * stride[i];
    row /= extent[i];
  }
  return element;
}

std::optional<PointwiseRows> pointwise_rows(const lowering::ConvolutionProblem& problem,
                                            std::string& refusal) {
  refusal = "";
  if (problem.groups != 1) refusal = "several groups";
  PointwiseRows rows;
  rows.image.channels = problem.image_channels;
  rows.windows.channels = problem.window_channels;
  int64_t image_stride = problem.image_channels, window_stride = problem.window_channels;
  for (int i = 3; i > 0; --i) {
    const lowering::ConvolutionAxis& axis = problem.axis[i - 1];
    if (axis.kernel != 1) refusal = "windows of several pixels";
    if (axis.pad > 0 || axis.offset(0) + (axis.windows - 1) * axis.stride >= axis.image) refusal = "padding";
    rows.image.extent[i] = rows.windows.extent[i] = axis.windows;
    rows.image.stride[i] = axis.stride * image_stride;
    rows.image.first += axis.offset(0) * image_stride;
    rows.windows.stride[i] = window_stride;
    image_stride *= axis.image;
    window_stride *= axis.windows;
  }
  rows.image.extent[0] = rows.windows.extent[0] = problem.batch;
  rows.image.stride[0] = image_stride;
  rows.windows.stride[0] = window_stride;
  if (rows.windows.count() == 0) refusal = "an empty part";
  return refusal.empty() ? std::optional(rows) : std::nullopt;
}

}  // namespace cortado::pairs
