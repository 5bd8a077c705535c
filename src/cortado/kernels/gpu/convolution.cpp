#include "cortado/layers/convolution.h"

#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/sums.h"
#include "cortado/kernels/gpu/windows.h"

namespace cortado {
namespace gpu {
namespace {

struct Channels {
  int64_t begin, end;
};
CORTADO_EVERYWHERE inline Channels common(int64_t begin, int64_t end, const PartAxis& with) {
  return {begin > with.begin ? begin : with.begin, end < with.end() ? end : with.end()};
}

// The direct sum over channels and taps, with weights in the order of files, [output channel, input channel
// of its group, taps].
struct ConvolutionGeometry : Windows {
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
      Point at = g.point(of, tap);
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
      Point at = g.window(of, tap);
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
            Point at = g.point(window, tap);
            at.c = c;
            if (g.input.holds(at))
              sum += static_cast<double>(dy[g.output.offset(window)]) * x[g.input.offset(at)];
          }
    dw[i] = static_cast<float>(sum);
  }
};

class ConvolutionKernel : public Kernel {
 public:
  ConvolutionKernel(const ConvolutionOptions& options, const Task& task) : bias_(options.bias_term) {
    set_windows(g_, options, task);
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
    sum_rows(a.stream, rows_, outputs_, a.scratch, totals, BiasTerm{dy, outputs_});
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
