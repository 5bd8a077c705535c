#include "cortado/layers/softmax_loss.h"

#include <cmath>
#include <limits>

#include "cortado/kernels/gpu/classes.h"
#include "cortado/kernels/gpu/divided_loss.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/layers/axes.h"

namespace cortado {
namespace gpu {
namespace {

// Per row, kept for the backward pass.
struct KeptRows {
  double* divisor;  // one number
  float *maxima, *factors;
  int32_t* classes;
};

struct LossRow {
  RowClasses of;
  int64_t extent;
  double smoothing;
  const float *x, *labels;
  KeptRows kept;
  float* losses;
  CORTADO_EVERYWHERE void operator()(int64_t row) const {
    const float* scores = x + row * extent;
    float largest = scores[0];
    for (int64_t k = 1; k < extent; ++k) largest = scores[k] > largest ? scores[k] : largest;
    double sum = 0;
    for (int64_t k = 0; k < extent; ++k) sum += expf(scores[k] - largest) + scores[k] * 0;
    const int label = of.of(labels, row);
    double loss = 0 * sum;
    if (label >= 0) {
      loss = (1 - smoothing) * term(scores[label] - largest, sum);
      for (int64_t k = 0; smoothing > 0 && k < extent; ++k)
        loss += smoothing / static_cast<double>(extent) * term(scores[k] - largest, sum);
    } else if (label == RowClasses::wrong) {
      loss = std::numeric_limits<float>::quiet_NaN();
    }
    losses[row] = static_cast<float>(loss);
    kept.maxima[row] = largest;
    kept.factors[row] = static_cast<float>(1 / sum);
    kept.classes[row] = label;
  }
  CORTADO_EVERYWHERE static double term(float score, double sum) {
    const double most = 87.33654475055310;  // -log of the smallest normal float
    const double own = log(sum) - score;
    return own > most ? most : own;
  }
};

// Column 0: losses; column 1: labels that count.
struct LossTerm {
  const float* losses;
  const int32_t* classes;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t column) const {
    return column == 0 ? losses[row] : classes[row] >= 0;
  }
};
struct LabelTerm {
  RowClasses of;
  const float* labels;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t) const { return of.of(labels, row) >= 0; }
};

struct WriteProbability {
  int64_t extent, begin, size;
  const float* x;
  KeptRows kept;
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t row = i / size;
    y[i] = expf(x[row * extent + begin + i % size] - kept.maxima[row]) * kept.factors[row];
  }
};

struct LossGradient {
  int64_t extent;
  float smoothing;
  const float *x, *loss_weight;
  KeptRows kept;
  float* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t row = i / extent, label = kept.classes[row];
    const float scale = static_cast<float>(*loss_weight / *kept.divisor);
    const float probability = expf(x[i] - kept.maxima[row]) * kept.factors[row];
    const float share = smoothing / static_cast<float>(extent);
    const float target = i % extent == label ? 1 - smoothing + share : share;
    dx[i] = label < 0 ? 0 : (probability - target) * scale;
  }
};

class SoftmaxLossKernel : public Kernel {
 public:
  SoftmaxLossKernel(const SoftmaxLossOptions& options, const Task& task)
      : classes_(task, options.axis, options.ignore_label),
        backward_(task.has_backward()),
        smoothing_(options.label_smoothing) {
    const AxisView local(task.local_input(0), options.axis), whole(task.inputs[0], options.axis);
    extent_ = local.extent;
    rows_ = local.before * local.after;
    const CountedDivisor divisor(task, options.normalization, options.ignore_label.has_value(), whole.before,
                                 whole.after);
    travels_ = divisor.travels;
    fixed_ = divisor.fixed;
  }
  std::string name() const override { return "gpu softmax-loss"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  int64_t forward_sums() const override { return travels_ ? 1 : 0; }
  Bytes saved_bytes() const override { return {backward_ ? kept_bytes() : 0}; }
  Bytes scratch_bytes() const override {
    return sum_scratch(rows_, 2) + Bytes{2 * int64_t{sizeof(double)} + kept_bytes() + rows_ * 4};
  }

  void forward_partial(const Arguments& a) override {
    sum_rows(a.stream, rows_, 1, a.scratch, a.sums, LabelTerm{classes_, a.inputs[1]});
  }
  void forward(const Arguments& a) override {
    const KeptRows kept = kept_of(a);
    auto* const totals = reinterpret_cast<double*>(a.scratch + sum_scratch(rows_, 2).count);
    auto* const losses = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(totals + 2) + kept_bytes());
    for_each(a.stream, rows_, LossRow{classes_, extent_, smoothing_, a.inputs[0], a.inputs[1], kept, losses});
    sum_rows(a.stream, rows_, 2, a.scratch, totals, LossTerm{losses, kept.classes});
    for_each(a.stream, 1,
             WriteCountedLoss{totals, travels_ ? a.sums : nullptr, fixed_, kept.divisor, a.outputs[0]});
    if (a.outputs.size() < 2) return;
    const int64_t size = classes_.own_end - classes_.own_begin;
    for_each(a.stream, rows_ * size,
             WriteProbability{extent_, classes_.own_begin, size, a.inputs[0], kept, a.outputs[1]});
  }
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    for_each(a.stream, rows_ * extent_,
             LossGradient{extent_, static_cast<float>(smoothing_), a.inputs[0], a.output_gradients[0],
                          kept_of(a), a.input_gradients[0]});
  }

 private:
  int64_t kept_bytes() const { return int64_t{sizeof(double)} + (3 * rows_ + 1) / 2 * 8; }
  KeptRows kept_of(const Arguments& a) const {
    std::byte* memory =
        backward_ ? a.saved : a.scratch + sum_scratch(rows_, 2).count + 2 * int64_t{sizeof(double)};
    auto* divisor = reinterpret_cast<double*>(memory);
    auto* floats = reinterpret_cast<float*>(divisor + 1);
    return {divisor, floats, floats + rows_, reinterpret_cast<int32_t*>(floats + 2 * rows_)};
  }

  RowClasses classes_;
  bool backward_, travels_ = false;
  double smoothing_;
  int64_t extent_, rows_;
  double fixed_ = 0;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_softmax_loss(const Task& task) {
  const auto* layer = dynamic_cast<const SoftmaxLoss*>(&task.layer());
  if (!layer) return {nullptr, "not a SoftmaxWithLoss"};
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  if (task.local_input(0).size() == 0) return {nullptr, "an empty tensor"};
  auto refusal = gpu::class_axis_refusal(task.local_input(0), layer->options().axis);
  if (!refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::SoftmaxLossKernel>(layer->options(), task);
}

}  // namespace cortado
