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

// Windows that lie over an image: a convolution sums the image's elements in each, a deconvolution spreads
// each element of its input over one. Tensors are channels last. Weights are in the order of files, [channel
// of the windows, channel of the image in its group, taps]; this device has those of its channels.
struct Windows {
  Part windows, image;  // one point for each window; what the windows lie over
  WindowsOfAxis d, h, w;
  int64_t group_windows, group_image;      // channels of a group
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

  // The place of a weight, by the channels of the windows and of the image.
  CORTADO_EVERYWHERE int64_t weight(int64_t of_windows, int64_t of_image, int64_t tap) const {
    const int64_t row = (of_windows - windows.c.begin) * weight_channels;
    return (row + of_image % group_image - first_channel) * taps() + tap;
  }
  // The channels of the image that are held here, of the group in which the windows' channel is, and the
  // other way round.
  CORTADO_EVERYWHERE PartAxis image_channels(int64_t of_windows) const {
    return held(of_windows / group_windows * group_image, group_image, image.c);
  }
  CORTADO_EVERYWHERE PartAxis window_channels(int64_t of_image) const {
    return held(of_image / group_image * group_windows, group_windows, windows.c);
  }

 private:
  CORTADO_EVERYWHERE static PartAxis held(int64_t first, int64_t count, const PartAxis& here) {
    const int64_t begin = first > here.begin ? first : here.begin;
    const int64_t last = first + count, end = last < here.end() ? last : here.end();
    return {begin, end > begin ? end - begin : 0};
  }
};

// `spreads`: of a deconvolution.
inline void set_windows(Windows& windows, const ConvolutionOptions& options, const Task& task, bool spreads) {
  const Window window = options.resolve(task.inputs[0].rank());
  const Part input = part_of(task.input_boxes[0]), output = part_of(task.output_boxes[0]);
  const int64_t group_inputs = task.inputs[0][1] / options.group;
  const int64_t group_outputs = task.outputs[0][1] / options.group;
  windows.windows = spreads ? input : output;
  windows.image = spreads ? output : input;
  windows.group_windows = spreads ? group_inputs : group_outputs;
  windows.group_image = spreads ? group_outputs : group_inputs;
  WindowsOfAxis* axes[] = {&windows.d, &windows.h, &windows.w};
  for (size_t i = 0; i < window.size(); ++i)
    *axes[i + 3 - window.size()] = {window[i].kernel, window[i].stride, window[i].pad, window[i].dilation};
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
