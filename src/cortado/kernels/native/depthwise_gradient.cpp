#include "cortado/kernels/native/depthwise_gradient.h"

#include <algorithm>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/forwarding_kernel.h"
#include "cortado/kernels/native/simd.h"
#include "cortado/kernels/tensor_type.h"
#include "cortado/layers/convolution.h"

namespace cortado::native {
namespace {

// One axis of the part that the task computes: window `place` meets the image at place * stride - pad + tap.
struct Axis {
  int64_t image = 0, windows = 0, taps = 0, stride = 1, pad = 0;

  int64_t first(int64_t place) const { return place * stride - pad; }
};

Axis axis_of(const Task& task, const WindowAxis& window, int axis) {
  const Range image = task.input_boxes[0][axis], windows = task.output_boxes[0][axis];
  return {image.size(), windows.size(), window.kernel, window.stride,
          image.begin - window.first(windows.begin)};
}

// The convolution that a task is a part of.
struct Depthwise {
  Axis h, w;
  int64_t batch = 0, channels = 0;

  int64_t taps() const { return h.taps * w.taps; }
  int64_t weights() const { return taps() * channels; }
};

// Adds what the windows of one row make of the weights' gradient at `c` of one row of taps to
// sums[tap][channel].
template <int64_t taps, typename V, typename E>
void add_window_row(const Depthwise& d, const E* image, const E* gradient, int64_t c, float* sums) {
  V sum[taps] = {};
  for (int64_t place = 0; place < d.w.windows; ++place) {
    const V factor = load<V>(gradient + place * d.channels + c);
    const int64_t first = d.w.first(place);
    const auto pixel = [&](int64_t tap) { return load<V>(image + (first + tap) * d.channels + c); };
    if (first >= 0 && first + taps <= d.w.image) {
#pragma GCC unroll 8
      for (int64_t tap = 0; tap < taps; ++tap) sum[tap] += factor * pixel(tap);
      continue;
    }
#pragma GCC unroll 8
    for (int64_t tap = 0; tap < taps; ++tap)
      if (first + tap >= 0 && first + tap < d.w.image) sum[tap] += factor * pixel(tap);
  }
#pragma GCC unroll 8
  for (int64_t tap = 0; tap < taps; ++tap) {
    float* const to = sums + tap * d.channels + c;
    store(to, load<V>(to) + sum[tap]);
  }
}

// Adds the rows of windows [begin, end), of all samples, to sums[tap][channel].
template <int64_t taps, typename E>
void add_window_rows(const Depthwise& d, const E* image, const E* gradient, int64_t begin, int64_t end,
                     float* sums) {
  for (int64_t row = begin; row < end; ++row) {
    const E* const own_gradient = gradient + row * d.w.windows * d.channels;
    const E* const sample = image + row / d.h.windows * d.h.image * d.w.image * d.channels;
    const int64_t first = d.h.first(row % d.h.windows);
    by_lanes(0, d.channels, [&]<typename V>(int64_t c) {
      for (int64_t tap = std::max<int64_t>(0, -first); tap < std::min(d.h.taps, d.h.image - first); ++tap)
        add_window_row<taps, V>(d, sample + (first + tap) * d.w.image * d.channels, own_gradient, c,
                                sums + tap * taps * d.channels);
    });
  }
}

// Scratch of the gradient: the sums of each thread, then the canonical gradient.
class DepthwiseGradientKernel : public ForwardingKernel {
 public:
  DepthwiseGradientKernel(std::unique_ptr<Kernel> inner_kernel, const Depthwise& convolution,
                          ElementType type)
      : ForwardingKernel(std::move(inner_kernel)),
        convolution_(convolution),
        format_(inner().parameter_format(0)),
        type_(type) {}

  std::string name() const override { return inner().name() + ", native gradient"; }
  Bytes scratch_bytes() const override {
    const int64_t own = (compute_threads() + 1) * aligned(bytes_of_weights());
    return {std::max(own, inner().scratch_bytes().count)};
  }

  void backward_weights(const Arguments& arguments) override {
    if (!arguments.parameter_gradients[0]) return;
    const float *image = arguments.inputs[0], *gradient = arguments.output_gradients[0];
    with_tensor_type(type_, [&]<typename E>() { run(elements<E>(image), elements<E>(gradient), arguments); });
  }

 private:
  int64_t bytes_of_weights() const { return convolution_.weights() * int64_t{sizeof(float)}; }

  template <typename E>
  void run(const E* image, const E* gradient, const Arguments& arguments) const {
    const Depthwise& d = convolution_;
    const int threads = compute_threads();
    const auto sums = [&](int64_t thread) {
      return reinterpret_cast<float*>(arguments.scratch + thread * aligned(bytes_of_weights()));
    };
    parallel_for(threads, [&](int64_t thread) {
      const int64_t rows = d.batch * d.h.windows;
      std::fill_n(sums(thread), d.weights(), 0.0f);
      const auto add = d.w.taps == 5 ? add_window_rows<5, E> : add_window_rows<7, E>;
      add(d, image, gradient, rows * thread / threads, rows * (thread + 1) / threads, sums(thread));
    });
    float* const target = arguments.parameter_gradients[0];
    float* const canonical = format_.from_canonical ? sums(threads) : target;
    parallel_for(d.channels, [&](int64_t c) {
      for (int64_t tap = 0; tap < d.taps(); ++tap) {
        float sum = 0;
        for (int thread = 0; thread < threads; ++thread) sum += sums(thread)[tap * d.channels + c];
        canonical[c * d.taps() + tap] = sum;
      }
    });
    if (format_.from_canonical) format_.from_canonical(canonical, target);
  }

  Depthwise convolution_;
  ParameterFormat format_;
  ElementType type_;  // of the image and the gradient
};

}  // namespace

std::unique_ptr<Kernel> with_depthwise_gradient(std::unique_ptr<Kernel> kernel, const Task& task) {
  const auto* layer = dynamic_cast<const Convolution*>(&task.layer());
  const bool weights_alone =
      std::ranges::count(task.parameter_gradients, true) == 1 && task.parameter_gradients[0];
  const Shape image = task.local_input(0);
  if (!layer || task.layers.size() > 1 || !weights_alone || task.input_type(0) != task.output_type(0) ||
      image.rank() != 4)
    return kernel;
  const ConvolutionOptions& options = layer->options();
  const Window window = options.resolve(image.rank());
  const bool dense = window[0].dilation == 1 && window[1].dilation == 1;
  const bool wide = window[1].kernel == 5 || window[1].kernel == 7;
  if (options.group != task.inputs[0][1] || options.group != options.num_output || !dense || !wide)
    return kernel;
  const Depthwise convolution{axis_of(task, window[0], 2), axis_of(task, window[1], 3), image[0], image[1]};
  return std::make_unique<DepthwiseGradientKernel>(std::move(kernel), convolution, task.input_type(0));
}

}  // namespace cortado::native
