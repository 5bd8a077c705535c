#include "cortado/layers/prelu.h"

#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/sums.h"

namespace cortado {
namespace gpu {
namespace {

// `slopes`: 1, or as many as channels. What it gives is x, or dy, times 1 or the slope of x.
struct PReluElement {
  const float *x, *value, *slope;
  int64_t slopes;
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    y[i] = x[i] > 0 ? value[i] : slope[i % slopes] * value[i];
  }
};

struct PReluTerm {
  const float *x, *dy;
  int64_t slopes;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t column) const {
    const int64_t i = row * slopes + column;
    return x[i] <= 0 ? static_cast<double>(dy[i]) * x[i] : 0;
  }
};

class PReluKernel : public Kernel {
 public:
  PReluKernel(const Part& part, bool shared)
      : slopes_(shared ? 1 : part.c.size), rows_(part.elements() / slopes_) {}
  std::string name() const override { return "gpu prelu"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  Bytes scratch_bytes() const override {
    return sum_scratch(rows_, slopes_) + Bytes{slopes_ * int64_t{sizeof(double)}};
  }
  void forward(const Arguments& a) override {
    for_each(a.stream, rows_ * slopes_,
             PReluElement{a.inputs[0], a.inputs[0], a.parameters[0], slopes_, a.outputs[0]});
  }
  void backward(const Arguments& a) override {
    const float *x = a.inputs[0], *dy = a.output_gradients[0];
    if (a.input_gradients[0])
      for_each(a.stream, rows_ * slopes_,
               PReluElement{x, dy, a.parameters[0], slopes_, a.input_gradients[0]});
    if (!a.parameter_gradients[0]) return;
    auto* totals = reinterpret_cast<double*>(a.scratch + sum_scratch(rows_, slopes_).count);
    sum_rows(a.stream, rows_, slopes_, a.scratch, totals, PReluTerm{x, dy, slopes_});
    for_each(a.stream, slopes_, RoundElement{totals, a.parameter_gradients[0]});
  }

 private:
  int64_t slopes_, rows_;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_prelu(const Task& task) {
  const auto* layer = dynamic_cast<const PRelu*>(&task.layer());
  if (!layer) return {nullptr, "not a PReLU"};
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::PReluKernel>(gpu::part_of(task.output_boxes[0]), layer->options().channel_shared);
}

}  // namespace cortado
