#include "cortado/layers/reduction.h"

#include <cmath>

#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/sums.h"

namespace cortado {
namespace gpu {
namespace {

using Operation = ReductionOptions::Operation;

// Each output sums `length` inputs that follow each other in spoken order.
struct ReductionTerm {
  SpokenOrder order;
  int64_t length;
  Operation operation;
  const float* x;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t output) const {
    const double value = x[order.offset(output * length + row)];
    if (operation == Operation::asum) return fabs(value);
    return operation == Operation::sumsq ? value * value : value;
  }
};

struct WriteReduction {
  SpokenOrder order;
  const double* totals;
  double factor;
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    y[order.offset(i)] = static_cast<float>(factor * totals[i]);
  }
};

struct ReductionGradient {
  SpokenOrder input, output;
  int64_t length;
  Operation operation;
  double factor;
  const float *x, *dy;
  float* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t at = input.offset(i);
    double slope = 1;
    if (operation == Operation::sumsq) slope = 2.0 * x[at];
    if (operation == Operation::asum) slope = x[at] > 0 ? 1 : x[at] < 0 ? -1 : 0;
    dx[at] = static_cast<float>(factor * dy[output.offset(i / length)] * slope);
  }
};

class ReductionKernel : public Kernel {
 public:
  ReductionKernel(const ReductionOptions& options, const Task& task)
      : operation_(options.operation),
        input_(task.local_input(0)),
        output_(task.local_output(0)),
        outputs_(task.local_output(0).size()),
        length_(task.local_input(0).count(task.local_output(0).rank())),
        factor_(operation_ == Operation::mean ? options.coeff / static_cast<double>(length_)
                                              : options.coeff) {}
  std::string name() const override { return "gpu reduction"; }
  BackwardReads backward_reads() const override {
    const bool linear = operation_ == Operation::sum || operation_ == Operation::mean;
    return {.inputs = !linear, .outputs = false};
  }
  Bytes scratch_bytes() const override {
    return sum_scratch(length_, outputs_) + Bytes{outputs_ * int64_t{sizeof(double)}};
  }
  void forward(const Arguments& a) override {
    auto* totals = reinterpret_cast<double*>(a.scratch + sum_scratch(length_, outputs_).count);
    sum_rows(a.stream, length_, outputs_, a.scratch, totals,
             ReductionTerm{input_, length_, operation_, a.inputs[0]});
    for_each(a.stream, outputs_, WriteReduction{output_, totals, factor_, a.outputs[0]});
  }
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    for_each(a.stream, outputs_ * length_,
             ReductionGradient{input_, output_, length_, operation_, factor_,
                               backward_reads().inputs ? a.inputs[0] : nullptr, a.output_gradients[0],
                               a.input_gradients[0]});
  }

 private:
  Operation operation_;
  SpokenOrder input_, output_;
  int64_t outputs_, length_;
  double factor_;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_reduction(const Task& task) {
  const auto* layer = dynamic_cast<const Reduction*>(&task.layer());
  if (!layer) return {nullptr, "not a Reduction"};
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::ReductionKernel>(layer->options(), task);
}

}  // namespace cortado
