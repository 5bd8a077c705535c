#include "cortado/kernels/native/narrow_groups.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <string>

#include "cortado/base/item_shares.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/group_lines.h"
#include "cortado/layers/convolution.h"

namespace cortado {

namespace native {

namespace {

// One axis of the part that the task computes: tap `tap` of window `place` meets pixel place * stride +
// tap * dilation - pad, where the image has one.
struct Axis {
  int64_t image = 0, windows = 0, taps = 0, stride = 1, dilation = 1, pad = 0;

  int64_t pixel(int64_t place, int64_t tap) const { return place * stride + tap * dilation - pad; }
};

Axis axis_of(const Task& task, const WindowAxis& window, int axis) {
  const Range image = task.input_boxes[0][axis], windows = task.output_boxes[0][axis];
  return {image.size(),  windows.size(),  window.kernel,
          window.stride, window.dilation, image.begin - window.first(windows.begin)};
}

// The convolution that a task is a part of.
struct GroupedConvolution {
  Axis h, w;
  int64_t batch = 0, channels = 0;
  bool bias = false;

  int64_t taps() const { return h.taps * w.taps; }
};

// The order of the weights that the kernels read: weights[tap][k][output], k in [0, width), of the output's
// group the input whose number in it is the output's ^ k.
template <int width>
ParameterFormat by_taps(int64_t taps, int64_t channels) {
  // move(own, canonical) for the place of each weight in both orders.
  const auto for_each_weight = [=](auto&& move) {
    for (int64_t channel = 0; channel < channels; ++channel)
      for (int64_t k = 0; k < width; ++k)
        for (int64_t tap = 0; tap < taps; ++tap)
          move((tap * width + k) * channels + channel,
               (channel * width + (channel ^ k) % width) * taps + tap);
  };
  return {width == 1 ? "taps x channels" : fmt::format("taps x {} x channels", width),
          taps * width * channels,
          [=](const float* from, float* to) {
            for_each_weight([&](int64_t own, int64_t canonical) { to[own] = from[canonical]; });
          },
          [=](const float* from, float* to) {
            for_each_weight([&](int64_t own, int64_t canonical) { to[canonical] = from[own]; });
          }};
}

// Scratch: of forward() and backward() weights in that order, of backward_weights() the sums of so many
// shares of the windows' rows.
template <typename E, int width>
class NarrowGroupsKernel : public Kernel {
 public:
  NarrowGroupsKernel(const GroupedConvolution& convolution, bool canonical)
      : d_(convolution),
        canonical_(canonical),
        by_taps_(by_taps<width>(d_.taps(), d_.channels)),
        shares_(std::clamp<int64_t>(d_.batch * d_.h.windows, 1, 4 * compute_threads())) {}

  std::string name() const override { return width == 1 ? "native depthwise" : "native narrow groups"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  Bytes scratch_bytes() const override { return Bytes{shares_ * sums_size() * int64_t{sizeof(float)}}; }
  ParameterFormat parameter_format(int parameter) const override {
    return parameter == 0 && !canonical_ ? by_taps_ : ParameterFormat();
  }

  void forward(const Arguments& a) override {
    const float* const weights = weights_of(a);
    const float* const bias = d_.bias ? a.parameters[1] : nullptr;
    E* const y = elements<E>(a.outputs[0]);
    const E* const x = elements<E>(a.inputs[0]);
    for_each_row(y, d_.h.windows, d_.w.windows, [&]<bool streaming>(int64_t sample, int64_t row, E* target) {
      write_line<streaming>(windows_of(weights, x, sample, row), bias, target, d_.channels);
    });
  }

  // Pixels `stride` apart meet the same taps.
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    const float* const weights = turned_weights_of(a);
    E* const dx = elements<E>(a.input_gradients[0]);
    const E* const dy = elements<E>(a.output_gradients[0]);
    for_each_row(dx, d_.h.image, d_.w.image, [&]<bool streaming>(int64_t sample, int64_t row, E* target) {
      for (int64_t first = 0; first < std::min(d_.w.stride, d_.w.image); ++first)
        write_line<streaming>(pixels_of(weights, dy, sample, row, first), nullptr,
                              target + first * d_.channels, d_.w.stride * d_.channels);
    });
  }

  void backward_weights(const Arguments& a) override {
    const bool bias = d_.bias && a.parameter_gradients[1];
    if (!a.parameter_gradients[0] && !bias) return;
    const E *x = elements<E>(a.inputs[0]), *dy = elements<E>(a.output_gradients[0]);
    share_items(shares_, [&](int64_t, int64_t share) {
      float* const sums = sums_of(a, share);
      std::fill_n(sums, sums_size(), 0.0F);
      const int64_t rows = d_.batch * d_.h.windows;
      for (int64_t row = rows * share / shares_; row < rows * (share + 1) / shares_; ++row) {
        const E* const gradient = dy + row * d_.w.windows * d_.channels;
        add_line(windows_of(sums, x, row / d_.h.windows, row % d_.h.windows), gradient);
        if (bias) add_bias_line(d_.w.windows, d_.channels, gradient, sums + weight_count());
      }
    });
    add_up(a, bias);
  }

 private:
  int64_t tap_weights() const { return width * d_.channels; }
  int64_t weight_count() const { return d_.taps() * tap_weights(); }
  int64_t sums_size() const { return weight_count() + (d_.bias ? d_.channels : 0); }
  float* sums_of(const Arguments& a, int64_t share) const {
    return reinterpret_cast<float*>(a.scratch) + share * sums_size();
  }

  // In the kernels' order; of bf16 tensors rounded to bf16.
  const float* weights_of(const Arguments& a) const {
    const float* weights = a.parameters[0];
    if (canonical_) {
      by_taps_.from_canonical(weights, sums_of(a, 0));
      weights = sums_of(a, 0);
    }
    if constexpr (std::is_same_v<E, float>) return weights;
    float* const rounded = sums_of(a, 0);
    for (int64_t i = 0; i < weight_count(); ++i) rounded[i] = to_float(to_bf16(weights[i]));
    return rounded;
  }

  // With the inputs and outputs of each group exchanged.
  const float* turned_weights_of(const Arguments& a) const {
    const float* const weights = weights_of(a);
    if constexpr (width == 1) return weights;
    float* const turned = sums_of(a, 0);
    if (turned != weights) std::copy_n(weights, weight_count(), turned);
    for (int64_t tap = 0; tap < d_.taps(); ++tap)
      for (int k = 0; k < width; ++k) {
        float* const row = turned + tap * tap_weights() + k * d_.channels;
        for (int64_t group = 0; group < d_.channels; group += width)
          for (int i = 0; i < width; ++i)
            if ((i ^ k) > i) std::swap(row[group + i], row[group + (i ^ k)]);
      }
    return turned;
  }

  // A row of windows and the image's pixels that they meet.
  template <typename Weight>
  Line<E, Weight, width> windows_of(Weight* weights, const E* image, int64_t sample, int64_t row) const {
    Line<E, Weight, width> line{.taps = d_.w.taps,
                                .weight_step = tap_weights(),
                                .first = -d_.w.pad,
                                .step = d_.w.stride,
                                .spread = d_.w.dilation,
                                .targets = d_.w.windows,
                                .pixels = d_.w.image,
                                .channels = d_.channels};
    for (int64_t tap = 0; tap < d_.h.taps; ++tap) {
      const int64_t pixel = d_.h.pixel(row, tap);
      if (pixel < 0 || pixel >= d_.h.image) continue;
      line.rows.push_back({image + (sample * d_.h.image + pixel) * d_.w.image * d_.channels,
                           weights + tap * d_.w.taps * tap_weights()});
    }
    return line;
  }

  // Pixels begin, begin + stride, ... of a row and the windows that meet them. They meet every n-th tap, from
  // the last to the first.
  Line<E, const float, width> pixels_of(const float* weights, const E* gradient, int64_t sample, int64_t row,
                                        int64_t begin) const {
    const Axis &h = d_.h, &w = d_.w;
    const int64_t n = w.stride / std::gcd(w.stride, w.dilation);
    int64_t first_tap = 0;
    while (first_tap < n && (begin + w.pad - first_tap * w.dilation) % w.stride != 0) ++first_tap;
    const bool meets = first_tap < std::min(n, w.taps);
    const int64_t taps = meets ? (w.taps - first_tap + n - 1) / n : 0, last_tap = first_tap + (taps - 1) * n;
    Line<E, const float, width> line{.taps = taps,
                                     .weight_step = -n * tap_weights(),
                                     .first = (begin + w.pad - last_tap * w.dilation) / w.stride,
                                     .spread = n * w.dilation / w.stride,
                                     .targets = (w.image - begin + w.stride - 1) / w.stride,
                                     .pixels = w.windows,
                                     .channels = d_.channels};
    for (int64_t tap = 0; tap < h.taps && meets; ++tap) {
      const int64_t above = row - h.pixel(0, tap), place = above / h.stride;
      if (above < 0 || above % h.stride != 0 || place >= h.windows) continue;
      line.rows.push_back({gradient + (sample * h.windows + place) * w.windows * d_.channels,
                           weights + (tap * w.taps + last_tap) * tap_weights()});
    }
    return line;
  }

  // work.template operator()<streaming>(sample, row, its first element) for each row of a tensor that is
  // written.
  template <typename Work>
  void for_each_row(E* tensor, int64_t rows, int64_t columns, Work&& work) const {
    const int64_t row_size = columns * d_.channels;
    const auto pass = [&]<bool streaming>() {
      share_items(d_.batch * rows, [&](int64_t, int64_t row) {
        work.template operator()<streaming>(row / rows, row % rows, tensor + row * row_size);
        if constexpr (streaming) finish_streaming();
      });
    };
    if (wants_streaming(tensor, d_.batch * rows * row_size, d_.channels)) {
      pass.template operator()<true>();
    } else {
      pass.template operator()<false>();
    }
  }

  // The gradients are the sums of all shares, in order.
  void add_up(const Arguments& a, bool bias) const {
    float* const sums = sums_of(a, 0);
    by_lanes(0, sums_size(), [&]<typename V>(int64_t i) {
      V sum = load<V>(sums + i);
      for (int64_t share = 1; share < shares_; ++share) sum += load<V>(sums_of(a, share) + i);
      store(sums + i, sum);
    });
    if (bias) std::copy_n(sums + weight_count(), d_.channels, a.parameter_gradients[1]);
    if (!a.parameter_gradients[0]) return;
    if (canonical_) {
      by_taps_.to_canonical(sums, a.parameter_gradients[0]);
    } else {
      std::copy_n(sums, weight_count(), a.parameter_gradients[0]);
    }
  }

  GroupedConvolution d_;
  bool canonical_;
  ParameterFormat by_taps_;
  int64_t shares_;
};

// The kernel for a 2-D convolution of groups of `width` channels in and out.
template <int width>
KernelOffer make_kernel(const Task& task, const ConvolutionOptions& options) {
  const Range inputs = task.input_boxes[0][1], outputs = task.output_boxes[0][1];
  if (inputs != outputs || outputs.begin % width != 0 || outputs.end % width != 0)
    return {nullptr, "a part of a group"};
  const Window window = options.resolve(4);
  const GroupedConvolution convolution{.h = axis_of(task, window[0], 2),
                                       .w = axis_of(task, window[1], 3),
                                       .batch = task.local_output(0)[0],
                                       .channels = outputs.size(),
                                       .bias = options.bias_term};
  return offer_by_type(task, [&]<typename E>() {
    return std::make_unique<NarrowGroupsKernel<E, width>>(convolution, task.canonical_parameters);
  });
}

// The 2-D convolution of several groups that the task is, or null and the reason.
const Convolution* grouped(const Task& task, std::string& refusal) {
  const auto* layer = dynamic_cast<const Convolution*>(&task.layer());
  if (!layer) {
    refusal = "not a Convolution";
  } else if (task.layers.size() > 1) {
    refusal = "a layer after it does not fuse";
  } else if (task.inputs[0].rank() != 4) {
    refusal = "not 2-D";
  } else if (layer->options().group == 1) {
    refusal = "one group";
  } else {
    return layer;
  }
  return nullptr;
}

// Channels and filters of a group; 0: not as many of both.
int64_t width_of(const Task& task, const ConvolutionOptions& options) {
  return task.inputs[0][1] == options.num_output ? options.num_output / options.group : 0;
}

}  // namespace

}  // namespace native

KernelOffer make_native_depthwise(const Task& task) {
  KernelOffer offer;
  const Convolution* const layer = native::grouped(task, offer.refusal);
  if (!layer) return offer;
  if (native::width_of(task, layer->options()) == 1) return native::make_kernel<1>(task, layer->options());
  return {nullptr, "several channels or filters in a group"};
}

KernelOffer make_native_narrow_groups(const Task& task) {
  KernelOffer offer;
  const Convolution* const layer = native::grouped(task, offer.refusal);
  if (!layer) return offer;
  const int64_t width = native::width_of(task, layer->options());
  if (width == 4) return native::make_kernel<4>(task, layer->options());
  if (width == 8) return native::make_kernel<8>(task, layer->options());
  return {nullptr, "not 4 or 8 channels and filters in a group"};
}

}  // namespace cortado
