#include "cortado/layers/convolution.h"

#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/sums.h"

namespace cortado {
namespace gpu {
namespace {

// One spatial axis of the window.
struct ConvolutionAxis {
  int64_t kernel = 1, stride = 1, pad = 0, dilation = 1;
  CORTADO_EVERYWHERE int64_t position(int64_t window, int64_t tap) const {
    return window * stride - pad + tap * dilation;
  }
  // The window in which that tap lies at a position; -1: none.
  CORTADO_EVERYWHERE int64_t window(int64_t position, int64_t tap) const {
    const int64_t first = position + pad - tap * dilation;
    return first >= 0 && first % stride == 0 ? first / stride : -1;
  }
};

struct Channels {
  int64_t begin, end;
};
CORTADO_EVERYWHERE inline Channels common(int64_t begin, int64_t end, const PartAxis& with) {
  return {begin > with.begin ? begin : with.begin, end < with.end() ? end : with.end()};
}

// The direct sum over channels and taps, of tensors in channels last and weights in the order of files,
// [output channel, input channel of its group, taps], of which this device has those of its channels.
struct ConvolutionGeometry {
  Part input, output;
  ConvolutionAxis d, h, w;
  int64_t group_inputs, group_outputs;     // channels of a group
  int64_t weight_channels, first_channel;  // of the slice; the first one's number in its group

  CORTADO_EVERYWHERE int64_t taps() const { return d.kernel * h.kernel * w.kernel; }
  CORTADO_EVERYWHERE int64_t weight(int64_t o, int64_t c, int64_t tap) const {
    return ((o - output.c.begin) * weight_channels + c % group_inputs - first_channel) * taps() + tap;
  }
  // The input channels held here that output channel o sums, and the output channels that read c.
  CORTADO_EVERYWHERE Channels channels_of(int64_t o) const {
    const int64_t first = o / group_outputs * group_inputs;
    return common(first, first + group_inputs, input.c);
  }
  CORTADO_EVERYWHERE Channels outputs_of(int64_t c) const {
    const int64_t first = c / group_inputs * group_outputs;
    return common(first, first + group_outputs, output.c);
  }
};

struct ConvolutionElement {
  ConvolutionGeometry g;
  const float *x, *weight, *bias;  // bias: null: none
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const Point of = g.output.point(i);
    const Channels channels = g.channels_of(of.c);
    double sum = bias ? bias[of.c - g.output.c.begin] : 0;
    for (int64_t tap = 0; tap < g.taps(); ++tap) {
      Point at = of;
      at.d = g.d.position(of.d, tap / g.w.kernel / g.h.kernel);
      at.h = g.h.position(of.h, tap / g.w.kernel % g.h.kernel);
      at.w = g.w.position(of.w, tap % g.w.kernel);
      at.c = channels.begin;
      if (channels.begin >= channels.end || !g.input.holds(at)) continue;
      const int64_t first = g.input.offset(at);
      for (int64_t c = channels.begin; c < channels.end; ++c)
        sum += static_cast<double>(x[first + c - channels.begin]) * weight[g.weight(of.c, c, tap)];
    }
    y[i] = static_cast<float>(sum);
  }
};

struct ConvolutionInputGradient {
  ConvolutionGeometry g;
  const float *dy, *weight;
  float* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const Point of = g.input.point(i);
    const Channels outputs = g.outputs_of(of.c);
    double sum = 0;
    for (int64_t tap = 0; tap < g.taps(); ++tap) {
      Point at = of;
      at.d = g.d.window(of.d, tap / g.w.kernel / g.h.kernel);
      at.h = g.h.window(of.h, tap / g.w.kernel % g.h.kernel);
      at.w = g.w.window(of.w, tap % g.w.kernel);
      at.c = outputs.begin;
      if (outputs.begin >= outputs.end || !g.output.holds(at)) continue;
      const int64_t first = g.output.offset(at);
      for (int64_t o = outputs.begin; o < outputs.end; ++o)
        sum += static_cast<double>(dy[first + o - outputs.begin]) * weight[g.weight(o, of.c, tap)];
    }
    dx[i] = static_cast<float>(sum);
  }
};

// Element [o, c, tap] of this device's slice of the weights.
struct ConvolutionWeightGradient {
  ConvolutionGeometry g;
  const float *x, *dy;
  float* dw;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t tap = i % g.taps(), o = g.output.c.begin + i / g.taps() / g.weight_channels;
    const int64_t c =
        o / g.group_outputs * g.group_inputs + g.first_channel + i / g.taps() % g.weight_channels;
    double sum = 0;
    Point window;
    window.c = o;
    for (window.n = g.output.n.begin; window.n < g.output.n.end(); ++window.n)
      for (window.d = g.output.d.begin; window.d < g.output.d.end(); ++window.d)
        for (window.h = g.output.h.begin; window.h < g.output.h.end(); ++window.h)
          for (window.w = g.output.w.begin; window.w < g.output.w.end(); ++window.w) {
            Point at{window.n, g.d.position(window.d, tap / g.w.kernel / g.h.kernel),
                     g.h.position(window.h, tap / g.w.kernel % g.h.kernel),
                     g.w.position(window.w, tap % g.w.kernel), c};
            if (g.input.holds(at))
              sum += static_cast<double>(dy[g.output.offset(window)]) * x[g.input.offset(at)];
          }
    dw[i] = static_cast<float>(sum);
  }
};

struct ConvolutionBiasTerm {
  const float* dy;
  int64_t channels;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t c) const { return dy[row * channels + c]; }
};

class ConvolutionKernel : public Kernel {
 public:
  ConvolutionKernel(const ConvolutionOptions& options, const Task& task) : bias_(options.bias_term) {
    const Window window = options.resolve(task.inputs[0].rank());
    g_.input = part_of(task.input_boxes[0]);
    g_.output = part_of(task.output_boxes[0]);
    ConvolutionAxis* axes[] = {&g_.d, &g_.h, &g_.w};
    for (size_t i = 0; i < window.size(); ++i)
      *axes[i + 3 - window.size()] = {window[i].kernel, window[i].stride, window[i].pad, window[i].dilation};
    g_.group_inputs = task.inputs[0][1] / options.group;
    g_.group_outputs = task.outputs[0][1] / options.group;
    const Box weight = task.parameter_box(0, 0);
    g_.weight_channels = weight[1].size();
    g_.first_channel = weight[1].begin;
    outputs_ = g_.output.c.size;
    rows_ = g_.output.elements() / outputs_;
  }
  std::string name() const override { return "gpu direct convolution"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  Bytes scratch_bytes() const override {
    return sum_scratch(rows_, outputs_) + Bytes{outputs_ * int64_t{sizeof(double)}};
  }

  void forward(const Arguments& a) override {
    for_each(a.stream, rows_ * outputs_,
             ConvolutionElement{g_, a.inputs[0], a.parameters[0], bias_ ? a.parameters[1] : nullptr,
                                a.outputs[0]});
  }
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    for_each(a.stream, g_.input.elements(),
             ConvolutionInputGradient{g_, a.output_gradients[0], a.parameters[0], a.input_gradients[0]});
  }
  void backward_weights(const Arguments& a) override {
    const float* dy = a.output_gradients[0];
    if (a.parameter_gradients[0])
      for_each(a.stream, outputs_ * g_.weight_channels * g_.taps(),
               ConvolutionWeightGradient{g_, a.inputs[0], dy, a.parameter_gradients[0]});
    if (!bias_ || !a.parameter_gradients[1]) return;
    auto* totals = reinterpret_cast<double*>(a.scratch + sum_scratch(rows_, outputs_).count);
    sum_rows(a.stream, rows_, outputs_, a.scratch, totals, ConvolutionBiasTerm{dy, outputs_});
    for_each(a.stream, outputs_, RoundElement{totals, a.parameter_gradients[1]});
  }

 private:
  bool bias_;
  ConvolutionGeometry g_{};
  int64_t outputs_, rows_;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_convolution(const Task& task) {
  const auto* layer = dynamic_cast<const Convolution*>(&task.layer());
  if (!layer) return {nullptr, "not a Convolution"};
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::ConvolutionKernel>(layer->options(), task);
}

}  // namespace cortado
