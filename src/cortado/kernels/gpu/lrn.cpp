#include "cortado/layers/lrn.h"

#include <cmath>

#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"

namespace cortado {
namespace gpu {
namespace {

// How far a region reaches on both sides along an axis, and the axis' extent.
struct Reach {
  int64_t reach = 0, extent = 1;
  CORTADO_EVERYWHERE int64_t begin(int64_t i) const { return i > reach ? i - reach : 0; }
  CORTADO_EVERYWHERE int64_t end(int64_t i) const { return i + reach + 1 < extent ? i + reach + 1 : extent; }
};

struct LrnGeometry {
  Part input, output;
  Reach c, d, h, w;
  double base = 1, factor = 1, beta = 1;

  // Calls visit(point) for each element of the region around one, within the tensor.
  template <typename Visit>
  CORTADO_EVERYWHERE void region(const Point& of, Visit&& visit) const {
    Point at = of;
    for (at.d = d.begin(of.d); at.d < d.end(of.d); ++at.d)
      for (at.h = h.begin(of.h); at.h < h.end(of.h); ++at.h)
        for (at.w = w.begin(of.w); at.w < w.end(of.w); ++at.w)
          for (at.c = c.begin(of.c); at.c < c.end(of.c); ++at.c) visit(at);
  }
  CORTADO_EVERYWHERE double normalizer(const float* x, const Point& of) const {
    double squares = 0;
    region(of, [&](const Point& at) {
      const double value = x[input.offset(at)];
      squares += value * value;
    });
    return base + factor * squares;
  }
};

struct LrnElement {
  LrnGeometry g;
  const float* x;
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const Point at = g.output.point(i);
    y[i] = static_cast<float>(x[g.input.offset(at)] * pow(g.normalizer(x, at), -g.beta));
  }
};

// Per output: what it gives to its region, dy * x * s^(-beta-1), and to its own input, dy * s^-beta.
struct LrnTerms {
  LrnGeometry g;
  const float *x, *dy;
  float *shared, *own;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const Point at = g.output.point(i);
    const double s = g.normalizer(x, at), power = pow(s, -g.beta);
    own[i] = static_cast<float>(dy[i] * power);
    shared[i] = static_cast<float>(dy[i] * power / s * x[g.input.offset(at)]);
  }
};

struct LrnGradient {
  LrnGeometry g;
  const float *x, *shared, *own;
  float* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const Point of = g.input.point(i);
    double sum = 0;
    g.region(of, [&](const Point& at) {
      if (g.output.holds(at)) sum += shared[g.output.offset(at)];
    });
    const double mine = g.output.holds(of) ? own[g.output.offset(of)] : 0;
    dx[i] = static_cast<float>(mine - 2 * g.factor * g.beta * x[i] * sum);
  }
};

class LrnKernel : public Kernel {
 public:
  LrnKernel(const LrnOptions& options, const Task& task) {
    const bool across = options.region == LrnOptions::Region::across_channels;
    const Part whole = part_of(Box::whole(task.inputs[0]));
    const int64_t reach = options.local_size / 2;
    g_.input = part_of(task.input_boxes[0]);
    g_.output = part_of(task.output_boxes[0]);
    g_.c = {across ? reach : 0, whole.c.size};
    g_.d = {across ? 0 : reach, whole.d.size};
    g_.h = {across ? 0 : reach, whole.h.size};
    g_.w = {across ? 0 : reach, whole.w.size};
    g_.base = across ? options.k : 1;
    g_.beta = options.beta;
    const int axes = across ? 1 : task.inputs[0].rank() - 2;
    g_.factor = options.alpha / std::pow(static_cast<double>(options.local_size), axes);
  }
  std::string name() const override { return "gpu lrn"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  Bytes scratch_bytes() const override { return {2 * g_.output.elements() * int64_t{sizeof(float)}}; }

  void forward(const Arguments& a) override {
    for_each(a.stream, g_.output.elements(), LrnElement{g_, a.inputs[0], a.outputs[0]});
  }
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    auto* const shared = reinterpret_cast<float*>(a.scratch);
    float* const own = shared + g_.output.elements();
    for_each(a.stream, g_.output.elements(), LrnTerms{g_, a.inputs[0], a.output_gradients[0], shared, own});
    for_each(a.stream, g_.input.elements(), LrnGradient{g_, a.inputs[0], shared, own, a.input_gradients[0]});
  }

 private:
  LrnGeometry g_;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_lrn(const Task& task) {
  const auto* layer = dynamic_cast<const Lrn*>(&task.layer());
  if (!layer) return {nullptr, "not an LRN"};
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::LrnKernel>(layer->options(), task);
}

}  // namespace cortado
