#include "cortado/layers/resampling.h"

#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"

namespace cortado {
namespace gpu {
namespace {

// AxisResampling (layers/resampling.h) on a device, and back from an input to its outputs.
struct ResampledAxis {
  int64_t step = 1, offset = 0, divisor = 1, begin = 0, extent = 1;
  bool nearest = true;

  struct Pair {
    int64_t first;
    double weight;  // of first + 1
  };
  CORTADO_EVERYWHERE Pair neighbours(int64_t output) const {
    const int64_t wanted = output * step + offset, place = wanted > 0 ? wanted : 0;
    const int64_t whole = place / divisor, first = whole < extent - 1 ? whole : extent - 1;
    const bool between = !nearest && first + 1 < extent;
    return {begin + first, between ? static_cast<double>(place % divisor) / static_cast<double>(divisor) : 0};
  }
  CORTADO_EVERYWHERE double weight(int64_t output, int64_t input) const {
    const Pair pair = neighbours(output);
    if (input == pair.first) return 1 - pair.weight;
    return input == pair.first + 1 ? pair.weight : 0;
  }
  // The first output whose place is not before that of input `input`, counted from `begin`.
  CORTADO_EVERYWHERE int64_t first_at(int64_t input) const {
    const int64_t distance = input * divisor - offset;
    return distance <= 0 ? 0 : (distance + step - 1) / step;
  }
  // The outputs, of those held, that an input may count in: one past the last is `end`.
  CORTADO_EVERYWHERE PartAxis outputs(int64_t input, const PartAxis& held) const {
    PartAxis range = held;
    if (step == 0) return range;
    const int64_t own = input - begin, first = own > 1 ? first_at(own - 1) : 0;
    int64_t end = own + 1 < extent ? first_at(own + 1) : held.end();
    if (end > held.end()) end = held.end();
    range.begin = first > held.begin ? first : held.begin;
    range.size = end > range.begin ? end - range.begin : 0;
    return range;
  }
};

struct ResamplingGeometry {
  Part input, output;
  ResampledAxis d, h, w;
};

struct ResampledElement {
  ResamplingGeometry g;
  const float* x;
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const Point of = g.output.point(i);
    const ResampledAxis::Pair d = g.d.neighbours(of.d), h = g.h.neighbours(of.h), w = g.w.neighbours(of.w);
    double sum = 0;
    for (int corner = 0; corner < 8; ++corner) {
      const int a = corner / 4, b = corner / 2 % 2, c = corner % 2;
      if ((a && !(d.weight > 0)) || (b && !(h.weight > 0)) || (c && !(w.weight > 0))) continue;
      const double weight =
          (a ? d.weight : 1 - d.weight) * (b ? h.weight : 1 - h.weight) * (c ? w.weight : 1 - w.weight);
      sum += weight * x[g.input.offset({of.n, d.first + a, h.first + b, w.first + c, of.c})];
    }
    y[i] = static_cast<float>(sum);
  }
};

struct ResampledGradient {
  ResamplingGeometry g;
  const float* dy;
  float* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const Point of = g.input.point(i);
    const PartAxis d = g.d.outputs(of.d, g.output.d), h = g.h.outputs(of.h, g.output.h),
                   w = g.w.outputs(of.w, g.output.w);
    double sum = 0;
    Point at = of;
    for (at.d = d.begin; at.d < d.end(); ++at.d)
      for (at.h = h.begin; at.h < h.end(); ++at.h)
        for (at.w = w.begin; at.w < w.end(); ++at.w) {
          const double weight = g.d.weight(at.d, of.d) * g.h.weight(at.h, of.h) * g.w.weight(at.w, of.w);
          if (weight != 0) sum += weight * dy[g.output.offset(at)];
        }
    dx[i] = static_cast<float>(sum);
  }
};

class ResamplingKernel : public Kernel {
 public:
  explicit ResamplingKernel(const Task& task) {
    g_.input = part_of(task.input_boxes[0]);
    g_.output = part_of(task.output_boxes[0]);
    const std::vector<AxisResampling> axes = dynamic_cast<const Resampling&>(task.layer()).axes(task.inputs);
    ResampledAxis* places[] = {&g_.d, &g_.h, &g_.w};
    for (size_t i = 0; i < axes.size(); ++i) {
      const AxisResampling& axis = axes[i];
      *places[i + 3 - axes.size()] = {axis.step,  axis.offset, axis.divisor,
                                      axis.begin, axis.extent, axis.nearest};
    }
  }
  std::string name() const override { return "gpu resampling"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }
  void forward(const Arguments& a) override {
    for_each(a.stream, g_.output.elements(), ResampledElement{g_, a.inputs[0], a.outputs[0]});
  }
  void backward(const Arguments& a) override {
    if (a.input_gradients[0])
      for_each(a.stream, g_.input.elements(),
               ResampledGradient{g_, a.output_gradients[0], a.input_gradients[0]});
  }

 private:
  ResamplingGeometry g_;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_resampling(const Task& task) {
  if (!dynamic_cast<const Resampling*>(&task.layer())) return {nullptr, "neither Upsample nor Interp"};
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::ResamplingKernel>(task);
}

}  // namespace cortado
