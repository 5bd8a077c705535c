// Convolutions and deconvolutions: what one does forward, the other does backward.
#include "cortado/layers/convolution.h"

#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/sums.h"
#include "cortado/kernels/gpu/windows.h"
#include "cortado/layers/deconvolution.h"

namespace cortado {
namespace gpu {
namespace {

// An element of the windows' tensor: the direct sum over the channels of the image and the taps.
struct GatheredElement {
  Windows g;
  const float *image, *weight, *bias;  // bias: null: none
  float* windows;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const Point of = g.windows.point(i);
    const PartAxis channels = g.image_channels(of.c);
    double sum = bias ? bias[of.c - g.windows.c.begin] : 0;
    for (int64_t tap = 0; channels.size > 0 && tap < g.taps(); ++tap) {
      Point at = g.point(of, tap);
      at.c = channels.begin;
      if (!g.image.holds(at)) continue;
      const int64_t first = g.image.offset(at);
      for (int64_t k = 0; k < channels.size; ++k)
        sum += static_cast<double>(image[first + k]) * weight[g.weight(of.c, channels.begin + k, tap)];
    }
    windows[i] = static_cast<float>(sum);
  }
};

// An element of the image: the sum over all windows that it is in, and their channels.
struct SpreadElement {
  Windows g;
  const float *windows, *weight, *bias;  // bias: null: none
  float* image;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const Point of = g.image.point(i);
    const PartAxis channels = g.window_channels(of.c);
    double sum = bias ? bias[of.c - g.image.c.begin] : 0;
    for (int64_t tap = 0; channels.size > 0 && tap < g.taps(); ++tap) {
      Point at = g.window(of, tap);
      at.c = channels.begin;
      if (!g.windows.holds(at)) continue;
      const int64_t first = g.windows.offset(at);
      for (int64_t k = 0; k < channels.size; ++k)
        sum += static_cast<double>(windows[first + k]) * weight[g.weight(channels.begin + k, of.c, tap)];
    }
    image[i] = static_cast<float>(sum);
  }
};

// An element of this device's slice of the weights' gradient.
struct WeightGradientElement {
  Windows g;
  const float *windows, *image;  // a tensor and a gradient
  float* dw;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t tap = i % g.taps(), of_windows = g.windows.c.begin + i / g.taps() / g.weight_channels;
    const int64_t of_image =
        of_windows / g.group_windows * g.group_image + g.first_channel + i / g.taps() % g.weight_channels;
    double sum = 0;
    Point window;
    window.c = of_windows;
    for (window.n = g.windows.n.begin; window.n < g.windows.n.end(); ++window.n)
      for (window.d = g.windows.d.begin; window.d < g.windows.d.end(); ++window.d)
        for (window.h = g.windows.h.begin; window.h < g.windows.h.end(); ++window.h)
          for (window.w = g.windows.w.begin; window.w < g.windows.w.end(); ++window.w) {
            Point at = g.point(window, tap);
            at.c = of_image;
            if (g.image.holds(at))
              sum += static_cast<double>(windows[g.windows.offset(window)]) * image[g.image.offset(at)];
          }
    dw[i] = static_cast<float>(sum);
  }
};

class ConvolutionKernel : public Kernel {
 public:
  // `spreads`: a deconvolution.
  ConvolutionKernel(const ConvolutionOptions& options, const Task& task, bool spreads)
      : bias_(options.bias_term), spreads_(spreads) {
    set_windows(g_, options, task, spreads);
    const Part& output = spreads ? g_.image : g_.windows;
    outputs_ = output.c.size;
    rows_ = output.elements() / outputs_;
  }
  std::string name() const override {
    return spreads_ ? "gpu direct deconvolution" : "gpu direct convolution";
  }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  Bytes scratch_bytes() const override {
    return sum_scratch(rows_, outputs_) + Bytes{outputs_ * int64_t{sizeof(double)}};
  }

  void forward(const Arguments& a) override {
    const float* bias = bias_ ? a.parameters[1] : nullptr;
    if (spreads_)
      spread(a, a.inputs[0], bias, a.outputs[0]);
    else
      gather(a, a.inputs[0], bias, a.outputs[0]);
  }
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    if (spreads_)
      gather(a, a.output_gradients[0], nullptr, a.input_gradients[0]);
    else
      spread(a, a.output_gradients[0], nullptr, a.input_gradients[0]);
  }
  void backward_weights(const Arguments& a) override {
    const float *x = a.inputs[0], *dy = a.output_gradients[0];
    if (a.parameter_gradients[0])
      for_each(a.stream, g_.windows.c.size * g_.weight_channels * g_.taps(),
               WeightGradientElement{g_, spreads_ ? x : dy, spreads_ ? dy : x, a.parameter_gradients[0]});
    if (!bias_ || !a.parameter_gradients[1]) return;
    auto* totals = reinterpret_cast<double*>(a.scratch + sum_scratch(rows_, outputs_).count);
    sum_rows(a.stream, rows_, outputs_, a.scratch, totals, BiasTerm{dy, outputs_});
    for_each(a.stream, outputs_, RoundElement{totals, a.parameter_gradients[1]});
  }

 private:
  void gather(const Arguments& a, const float* image, const float* bias, float* windows) const {
    for_each(a.stream, g_.windows.elements(), GatheredElement{g_, image, a.parameters[0], bias, windows});
  }
  void spread(const Arguments& a, const float* windows, const float* bias, float* image) const {
    for_each(a.stream, g_.image.elements(), SpreadElement{g_, windows, a.parameters[0], bias, image});
  }

  bool bias_, spreads_;
  Windows g_{};
  int64_t outputs_, rows_;
};

// Offers the kernel where the task's layer is of that type.
template <typename LayerType>
KernelOffer offered_convolution(const Task& task, const char* refusal, bool spreads) {
  const auto* layer = dynamic_cast<const LayerType*>(&task.layer());
  if (!layer) return {nullptr, refusal};
  if (auto common = common_refusal(task); !common.empty()) return {nullptr, std::move(common)};
  return offered<ConvolutionKernel>(layer->options(), task, spreads);
}

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_convolution(const Task& task) {
  return gpu::offered_convolution<Convolution>(task, "not a Convolution", false);
}

KernelOffer make_gpu_deconvolution(const Task& task) {
  return gpu::offered_convolution<Deconvolution>(task, "not a Deconvolution", true);
}

}  // namespace cortado
