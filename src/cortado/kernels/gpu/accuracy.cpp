#include "cortado/layers/accuracy.h"

#include "cortado/kernels/accuracy_counts.h"
#include "cortado/kernels/gpu/classes.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/sums.h"

namespace cortado {
namespace gpu {
namespace {

// Column 0: 1 for a right answer, fewer than top_k other classes scoring at least as high; column 1: 1 for a
// label that counts.
struct AccuracyTerm {
  RowClasses of;
  int64_t extent, top_k;
  const float *x, *labels;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t column) const {
    const int label = of.of(labels, row);
    if (column == 1) return label >= 0;
    const float* scores = x + row * extent;
    double zero = label == RowClasses::wrong ? scores[0] / 0.0F - scores[0] / 0.0F : 0;
    int64_t as_good = 0;
    for (int64_t k = 0; k < extent; ++k) {
      zero += scores[k] * 0;
      if (label >= 0 && k != label && scores[k] >= scores[label]) ++as_good;
    }
    return (label >= 0 && as_good < top_k ? 1 : 0) + zero;
  }
};

// `known`: labels of the whole layer; 0: those that were counted.
struct WriteAccuracy {
  const double* sums;
  double known;
  float* share;
  CORTADO_EVERYWHERE void operator()(int64_t) const {
    const double labels = known > 0 ? known : sums[1];
    *share = static_cast<float>(labels == 0 ? sums[0] * 0 : sums[0] / labels);
  }
};

class AccuracyKernel : public Kernel {
 public:
  AccuracyKernel(const AccuracyOptions& options, const Task& task)
      : classes_(task, options.axis, options.ignore_label), top_k_(options.top_k) {
    const AxisView local(task.local_input(0), options.axis), whole(task.inputs[0], options.axis);
    extent_ = local.extent;
    rows_ = local.before * local.after;
    if (task.cut) known_ = static_cast<double>(whole.before * whole.after);
  }
  std::string name() const override { return "gpu accuracy"; }
  Bytes scratch_bytes() const override { return sum_scratch(rows_, 2) + Bytes{2 * int64_t{sizeof(double)}}; }
  void forward(const Arguments& a) override {
    auto* const totals = reinterpret_cast<double*>(a.scratch + sum_scratch(rows_, 2).count);
    sum_rows(a.stream, rows_, 2, a.scratch, totals,
             AccuracyTerm{classes_, extent_, top_k_, a.inputs[0], a.inputs[1]});
    for_each(a.stream, 1, WriteAccuracy{totals, known_, a.outputs[0]});
  }
  void backward(const Arguments&) override {}

 private:
  RowClasses classes_;
  int64_t top_k_, extent_, rows_;
  double known_ = 0;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_accuracy(const Task& task) {
  const auto* layer = dynamic_cast<const Accuracy*>(&task.layer());
  if (!layer) return {nullptr, "not an Accuracy"};
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  if (task.outputs.size() > 1) return {nullptr, "an output per class"};
  if (AccuracyCounts(task, layer->options()).sums() > 0)
    return {nullptr, "labels to ignore on several devices"};
  auto refusal = gpu::class_axis_refusal(task.local_input(0), layer->options().axis);
  if (!refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::AccuracyKernel>(layer->options(), task);
}

}  // namespace cortado
