#include "cortado/layers/deconvolution.h"

#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/sums.h"
#include "cortado/kernels/gpu/windows.h"

namespace cortado {
namespace gpu {
namespace {

// Windows of the input are spread over the output; weights are in the order of files, [input channel, output
// channel of its group, taps].
struct SpreadGeometry : Windows {
  CORTADO_EVERYWHERE int64_t weight(int64_t c, int64_t o, int64_t tap) const {
    return ((c - input.c.begin) * weight_channels + o % group_outputs - first_channel) * taps() + tap;
  }
  // The channels of `held` in the group of which `channel` is one of `own`.
  CORTADO_EVERYWHERE static PartAxis joined(int64_t channel, int64_t own, int64_t others,
                                            const PartAxis& held) {
    const int64_t first = channel / own * others, last = first + others;
    PartAxis range;
    range.begin = first > held.begin ? first : held.begin;
    const int64_t end = last < held.end() ? last : held.end();
    range.size = end > range.begin ? end - range.begin : 0;
    return range;
  }
};

struct SpreadElement {
  SpreadGeometry g;
  const float *x, *weight, *bias;  // bias: null: none
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const Point of = g.output.point(i);
    const PartAxis channels = SpreadGeometry::joined(of.c, g.group_outputs, g.group_inputs, g.input.c);
    double sum = bias ? bias[of.c - g.output.c.begin] : 0;
    for (int64_t tap = 0; channels.size > 0 && tap < g.taps(); ++tap) {
      Point at = g.window(of, tap);
      at.c = channels.begin;
      if (!g.input.holds(at)) continue;
      const int64_t first = g.input.offset(at);
      for (int64_t k = 0; k < channels.size; ++k)
        sum += static_cast<double>(x[first + k]) * weight[g.weight(channels.begin + k, of.c, tap)];
    }
    y[i] = static_cast<float>(sum);
  }
};

struct SpreadInputGradient {
  SpreadGeometry g;
  const float *dy, *weight;
  float* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const Point of = g.input.point(i);
    const PartAxis outputs = SpreadGeometry::joined(of.c, g.group_inputs, g.group_outputs, g.output.c);
    double sum = 0;
    for (int64_t tap = 0; outputs.size > 0 && tap < g.taps(); ++tap) {
      Point at = g.point(of, tap);
      at.c = outputs.begin;
      if (!g.output.holds(at)) continue;
      const int64_t first = g.output.offset(at);
      for (int64_t k = 0; k < outputs.size; ++k)
        sum += static_cast<double>(dy[first + k]) * weight[g.weight(of.c, outputs.begin + k, tap)];
    }
    dx[i] = static_cast<float>(sum);
  }
};

// Element [c, o, tap] of this device's slice of the weights.
struct SpreadWeightGradient {
  SpreadGeometry g;
  const float *x, *dy;
  float* dw;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t tap = i % g.taps(), c = g.input.c.begin + i / g.taps() / g.weight_channels;
    const int64_t o =
        c / g.group_inputs * g.group_outputs + g.first_channel + i / g.taps() % g.weight_channels;
    double sum = 0;
    Point window;
    window.c = c;
    for (window.n = g.input.n.begin; window.n < g.input.n.end(); ++window.n)
      for (window.d = g.input.d.begin; window.d < g.input.d.end(); ++window.d)
        for (window.h = g.input.h.begin; window.h < g.input.h.end(); ++window.h)
          for (window.w = g.input.w.begin; window.w < g.input.w.end(); ++window.w) {
            Point at = g.point(window, tap);
            at.c = o;
            if (g.output.holds(at))
              sum += static_cast<double>(x[g.input.offset(window)]) * dy[g.output.offset(at)];
          }
    dw[i] = static_cast<float>(sum);
  }
};

class DeconvolutionKernel : public Kernel {
 public:
  DeconvolutionKernel(const ConvolutionOptions& options, const Task& task) : bias_(options.bias_term) {
    set_windows(g_, options, task);
    outputs_ = g_.output.c.size;
    rows_ = g_.output.elements() / outputs_;
  }
  std::string name() const override { return "gpu direct deconvolution"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  Bytes scratch_bytes() const override {
    return sum_scratch(rows_, outputs_) + Bytes{outputs_ * int64_t{sizeof(double)}};
  }

  void forward(const Arguments& a) override {
    for_each(
        a.stream, rows_ * outputs_,
        SpreadElement{g_, a.inputs[0], a.parameters[0], bias_ ? a.parameters[1] : nullptr, a.outputs[0]});
  }
  void backward(const Arguments& a) override {
    if (a.input_gradients[0])
      for_each(a.stream, g_.input.elements(),
               SpreadInputGradient{g_, a.output_gradients[0], a.parameters[0], a.input_gradients[0]});
  }
  void backward_weights(const Arguments& a) override {
    const float* dy = a.output_gradients[0];
    if (a.parameter_gradients[0])
      for_each(a.stream, g_.input.c.size * g_.weight_channels * g_.taps(),
               SpreadWeightGradient{g_, a.inputs[0], dy, a.parameter_gradients[0]});
    if (!bias_ || !a.parameter_gradients[1]) return;
    auto* totals = reinterpret_cast<double*>(a.scratch + sum_scratch(rows_, outputs_).count);
    sum_rows(a.stream, rows_, outputs_, a.scratch, totals, BiasTerm{dy, outputs_});
    for_each(a.stream, outputs_, RoundElement{totals, a.parameter_gradients[1]});
  }

 private:
  bool bias_;
  SpreadGeometry g_{};
  int64_t outputs_, rows_;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_deconvolution(const Task& task) {
  const auto* layer = dynamic_cast<const Deconvolution*>(&task.layer());
  if (!layer) return {nullptr, "not a Deconvolution"};
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::DeconvolutionKernel>(layer->options(), task);
}

}  // namespace cortado
