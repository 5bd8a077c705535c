#include "cortado/kernels/native/depthwise.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "cortado/base/item_shares.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/simd.h"
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
struct Depthwise {
  Axis h, w;
  int64_t batch = 0, channels = 0;
  bool bias = false;

  int64_t taps() const { return h.taps * w.taps; }
  int64_t weights() const { return taps() * channels; }
};

// A line of targets, pixels of a row of windows or of the image, and the taps of the filter that they take:
// tap t of each of `rows` at target j meets pixel first + j * step + t * spread of the row's source, where it
// has one.
template <typename E, typename Weight>
struct Line {
  struct Row {
    const E* source = nullptr;
    Weight* weights = nullptr;  // of tap 0; of the gradient of the weights: what it is added to
  };

  std::vector<Row> rows;
  int64_t taps = 0, weight_step = 0;  // of each row; from the weights of one to those of the next
  int64_t first = 0, step = 1, spread = 1;
  int64_t targets = 0, pixels = 0;  // of the line; of a row of the source
  int64_t channels = 0;

  int64_t pixel(int64_t target) const { return first + target * step; }
  bool has(int64_t pixel) const { return 0 <= pixel && pixel < pixels; }
  // Whether `count` targets take all taps.
  bool inside(int64_t target, int64_t count) const {
    return pixel(target) >= 0 && pixel(target + count - 1) + (taps - 1) * spread < pixels;
  }
};

// Calls work.template operator()<taps, step>(), the line's numbers where there is code for these, else 0s.
template <typename E, typename Weight, typename Work>
void with_steps(const Line<E, Weight>& line, Work&& work) {
  if (line.spread == 1 && line.step == 1) {
    if (line.taps == 1) return work.template operator()<1, 1>();
    if (line.taps == 2) return work.template operator()<2, 1>();
    if (line.taps == 3) return work.template operator()<3, 1>();
    if (line.taps == 5) return work.template operator()<5, 1>();
  } else if (line.spread == 1 && line.step == 2) {
    if (line.taps == 3) return work.template operator()<3, 2>();
    if (line.taps == 5) return work.template operator()<5, 2>();
  }
  work.template operator()<0, 0>();
}

// Calls block.template operator()<count, taps, step, inside>(target, covered) for blocks of `count` targets
// that cover the line; the first `covered` of a block were in the one before it. `inside`: they take all
// taps.
template <typename E, typename Weight, typename Block>
void cover(const Line<E, Weight>& line, Block&& block) {
  with_steps(line, [&]<int taps, int step>() {
    int64_t target = 0;
    const auto run_all = [&]<int count>() {
      while (target < line.targets && line.targets >= count) {
        const int64_t begin = std::min(target, line.targets - count), covered = target - begin;
        if (line.inside(begin, count)) {
          block.template operator()<count, taps, step, true>(begin, covered);
        } else {
          block.template operator()<count, taps, step, false>(begin, covered);
        }
        target = begin + count;
      }
    };
    run_all.template operator()<8>();
    run_all.template operator()<4>();
    run_all.template operator()<1>();
  });
}

// Adds to the sums of `count` targets what the taps of a row add. `at`: the pixel of tap 0 of the first
// target.
template <int count, int taps, int step, bool inside, typename V, typename E>
inline void add_taps(const Line<E, const float>& line, int64_t at, const E* source, const float* weights,
                     V (&sums)[count]) {
  if constexpr (taps > 0 && lanes_of<V> == lanes) {
    V factors[taps];
#pragma GCC unroll 8
    for (int t = 0; t < taps; ++t) factors[t] = in_register(load<V>(weights + t * line.weight_step));
#pragma GCC unroll 24
    for (int pixel = 0; pixel < (count - 1) * step + taps; ++pixel) {
      if (!inside && !line.has(at + pixel)) continue;
      const V value = in_register(load<V>(source + (at + pixel) * line.channels));
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i)
        if (pixel >= i * step && pixel < i * step + taps) sums[i] += factors[pixel - i * step] * value;
    }
  } else {
    for (int64_t t = 0; t < line.taps; ++t) {
      const V factor = load<V>(weights + t * line.weight_step);
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) {
        const int64_t pixel = at + i * line.step + t * line.spread;
        if (inside || line.has(pixel)) sums[i] += factor * load<V>(source + pixel * line.channels);
      }
    }
  }
}

// Writes a line of targets, `stride` elements apart: each is its bias (null: 0) and what its taps add.
template <bool streaming, typename E>
void write_line(const Line<E, const float>& line, const float* bias, E* target, int64_t stride) {
  cover(line, [&]<int count, int taps, int step, bool inside>(int64_t first, int64_t) {
    by_lanes(0, line.channels, [=, &line]<typename V>(int64_t c) {
      V sums[count];
      const V start = bias ? load<V>(bias + c) : V{};
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) sums[i] = start;
      for (const auto& row : line.rows)
        add_taps<count, taps, step, inside>(line, line.pixel(first), row.source + c, row.weights + c, sums);
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) store<streaming>(target + (first + i) * stride + c, sums[i]);
    });
  });
}

// Adds to the weights of a row's taps what `count` windows make of their gradient. `at`: the pixel of tap 0
// of the first window.
template <int count, int taps, int step, bool inside, typename V, typename E>
inline void add_gradient(const Line<E, float>& line, int64_t at, const E* source, const V (&factors)[count],
                         float* weights) {
  if constexpr (taps > 0 && lanes_of<V> == lanes) {
    V sums[taps] = {};
#pragma GCC unroll 24
    for (int pixel = 0; pixel < (count - 1) * step + taps; ++pixel) {
      if (!inside && !line.has(at + pixel)) continue;
      const V value = in_register(load<V>(source + (at + pixel) * line.channels));
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i)
        if (pixel >= i * step && pixel < i * step + taps) sums[pixel - i * step] += factors[i] * value;
    }
#pragma GCC unroll 8
    for (int t = 0; t < taps; ++t) {
      float* const to = weights + t * line.weight_step;
      store(to, load<V>(to) + sums[t]);
    }
  } else {
    for (int64_t t = 0; t < line.taps; ++t) {
      V sum{};
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) {
        const int64_t pixel = at + i * line.step + t * line.spread;
        if (inside || line.has(pixel)) sum += factors[i] * load<V>(source + pixel * line.channels);
      }
      float* const to = weights + t * line.weight_step;
      store(to, load<V>(to) + sum);
    }
  }
}

// Adds to the weights of a line of windows what these make of their gradient.
template <typename E>
void add_line(const Line<E, float>& line, const E* gradient) {
  cover(line, [&]<int count, int taps, int step, bool inside>(int64_t first, int64_t covered) {
    by_lanes(0, line.channels, [=, &line]<typename V>(int64_t c) {
      V factors[count];
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i)
        factors[i] = i < covered ? V{} : in_register(load<V>(gradient + (first + i) * line.channels + c));
      for (const auto& row : line.rows)
        add_gradient<count, taps, step, inside>(line, line.pixel(first), row.source + c, factors,
                                                row.weights + c);
    });
  });
}

template <typename E>
void add_bias_line(int64_t windows, int64_t channels, const E* gradient, float* bias) {
  for (int64_t place = 0; place < windows; ++place)
    by_lanes(0, channels, [&]<typename V>(int64_t c) {
      store(bias + c, load<V>(bias + c) + load<V>(gradient + place * channels + c));
    });
}

// The order of the weights that the kernels read: weights[tap][channel].
ParameterFormat by_taps(int64_t taps, int64_t channels) {
  const auto transposed = [](int64_t rows, int64_t columns) {
    return [=](const float* from, float* to) {
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column)
          to[column * rows + row] = from[row * columns + column];
    };
  };
  return {"taps x channels", taps * channels, transposed(channels, taps), transposed(taps, channels)};
}

// Scratch: of forward() and backward() weights in that order, of backward_weights() the sums of so many
// shares of the windows' rows.
template <typename E>
class DepthwiseKernel : public Kernel {
 public:
  DepthwiseKernel(const Depthwise& convolution, bool canonical)
      : d_(convolution),
        canonical_(canonical),
        by_taps_(by_taps(d_.taps(), d_.channels)),
        shares_(std::clamp<int64_t>(d_.batch * d_.h.windows, 1, 4 * compute_threads())) {}

  std::string name() const override { return "native depthwise"; }
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
    const float* const weights = weights_of(a);
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
        if (bias) add_bias_line(d_.w.windows, d_.channels, gradient, sums + d_.weights());
      }
    });
    add_up(a, bias);
  }

 private:
  int64_t sums_size() const { return d_.weights() + (d_.bias ? d_.channels : 0); }
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
    for (int64_t i = 0; i < d_.weights(); ++i) rounded[i] = to_float(to_bf16(weights[i]));
    return rounded;
  }

  // A row of windows and the image's pixels that they meet.
  template <typename Weight>
  Line<E, Weight> windows_of(Weight* weights, const E* image, int64_t sample, int64_t row) const {
    Line<E, Weight> line{.taps = d_.w.taps,
                         .weight_step = d_.channels,
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
                           weights + tap * d_.w.taps * d_.channels});
    }
    return line;
  }

  // Pixels begin, begin + stride, ... of a row and the windows that meet them. They meet every n-th tap, from
  // the last to the first.
  Line<E, const float> pixels_of(const float* weights, const E* gradient, int64_t sample, int64_t row,
                                 int64_t begin) const {
    const Axis &h = d_.h, &w = d_.w;
    const int64_t n = w.stride / std::gcd(w.stride, w.dilation);
    int64_t first_tap = 0;
    while (first_tap < n && (begin + w.pad - first_tap * w.dilation) % w.stride != 0) ++first_tap;
    const bool meets = first_tap < std::min(n, w.taps);
    const int64_t taps = meets ? (w.taps - first_tap + n - 1) / n : 0, last_tap = first_tap + (taps - 1) * n;
    Line<E, const float> line{.taps = taps,
                              .weight_step = -n * d_.channels,
                              .first = (begin + w.pad - last_tap * w.dilation) / w.stride,
                              .spread = n * w.dilation / w.stride,
                              .targets = (w.image - begin + w.stride - 1) / w.stride,
                              .pixels = w.windows,
                              .channels = d_.channels};
    for (int64_t tap = 0; tap < h.taps && meets; ++tap) {
      const int64_t above = row - h.pixel(0, tap), place = above / h.stride;
      if (above < 0 || above % h.stride != 0 || place >= h.windows) continue;
      line.rows.push_back({gradient + (sample * h.windows + place) * w.windows * d_.channels,
                           weights + (tap * w.taps + last_tap) * d_.channels});
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
    if (bias) std::copy_n(sums + d_.weights(), d_.channels, a.parameter_gradients[1]);
    if (!a.parameter_gradients[0]) return;
    if (canonical_) {
      by_taps_.to_canonical(sums, a.parameter_gradients[0]);
    } else {
      std::copy_n(sums, d_.weights(), a.parameter_gradients[0]);
    }
  }

  Depthwise d_;
  bool canonical_;
  ParameterFormat by_taps_;
  int64_t shares_;
};

}  // namespace

}  // namespace native

KernelOffer make_native_depthwise(const Task& task) {
  const auto* layer = dynamic_cast<const Convolution*>(&task.layer());
  if (!layer) return {nullptr, "not a Convolution"};
  if (task.layers.size() > 1) return {nullptr, "a layer after it does not fuse"};
  if (task.inputs[0].rank() != 4) return {nullptr, "not 2-D"};
  const ConvolutionOptions& options = layer->options();
  if (options.group == 1) return {nullptr, "one group"};
  if (options.group != task.inputs[0][1] || options.group != options.num_output)
    return {nullptr, "several channels or filters in a group"};
  const Window window = options.resolve(4);
  const native::Depthwise convolution{.h = native::axis_of(task, window[0], 2),
                                      .w = native::axis_of(task, window[1], 3),
                                      .batch = task.local_output(0)[0],
                                      .channels = task.local_output(0)[1],
                                      .bias = options.bias_term};
  return native::offer_by_type(task, [&]<typename E>() {
    return std::make_unique<native::DepthwiseKernel<E>>(convolution, task.canonical_parameters);
  });
}

}  // namespace cortado
