#pragma once

#include "cortado/kernels/gpu/elements.h"
#include "cortado/layers/convolution.h"

namespace cortado::gpu {

// One spatial axis of the window.
struct WindowsOfAxis {
  int64_t kernel = 1, stride = 1, pad = 0, dilation = 1;
  CORTADO_EVERYWHERE int64_t position(int64_t window, int64_t tap) const {
    return window * stride - pad + tap * dilation;
  }
  // The window whose tap lies at a position; -1: none.
  CORTADO_EVERYWHERE int64_t window(int64_t position, int64_t tap) const {
    const int64_t first = position + pad - tap * dilation;
    return first >= 0 && first % stride == 0 ? first / stride : -1;
  }
};

// Windows of a convolution, which gathers, or of a deconvolution, which spreads. Tensors are channels last;
// of the weights this device has those of its channels.
struct Windows {
  Part input, output;
  WindowsOfAxis d, h, w;
  int64_t group_inputs, group_outputs;     // channels of a group
  int64_t weight_channels, first_channel;  // of the slice; the first one's number in its group

  CORTADO_EVERYWHERE int64_t taps() const { return d.kernel * h.kernel * w.kernel; }
  // The point of tap `tap` of a window, and the window that has that tap at a point; the channel is left as
  // it is.
  CORTADO_EVERYWHERE Point point(const Point& window, int64_t tap) const {
    return {window.n, d.position(window.d, tap / w.kernel / h.kernel),
            h.position(window.h, tap / w.kernel % h.kernel), w.position(window.w, tap % w.kernel), window.c};
  }
  CORTADO_EVERYWHERE Point window(const Point& at, int64_t tap) const {
    return {at.n, d.window(at.d, tap / w.kernel / h.kernel), h.window(at.h, tap / w.kernel % h.kernel),
            w.window(at.w, tap % w.kernel), at.c};
  }
};

inline void set_windows(Windows& windows, const ConvolutionOptions& options, const Task& task) {
  const Window window = options.resolve(task.inputs[0].rank());
  windows.input = part_of(task.input_boxes[0]);
  windows.output = part_of(task.output_boxes[0]);
  WindowsOfAxis* axes[] = {&windows.d, &windows.h, &windows.w};
  for (size_t i = 0; i < window.size(); ++i)
    *axes[i + 3 - window.size()] = {window[i].kernel, window[i].stride, window[i].pad, window[i].dilation};
  windows.group_inputs = task.inputs[0][1] / options.group;
  windows.group_outputs = task.outputs[0][1] / options.group;
  const Box weight = task.parameter_box(0, 0);
  windows.weight_channels = weight[1].size();
  windows.first_channel = weight[1].begin;
}

// A term of a bias's gradient: a sum over all but the channels.
struct BiasTerm {
  const float* dy;
  int64_t channels;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t c) const { return dy[row * channels + c]; }
};

}  // namespace cortado::gpu
