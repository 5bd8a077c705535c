#include "cortado/layers/infogain_loss.h"

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

// Rows of scores of all classes, one for each label, and the information matrix, row-major.
struct InfogainRows {
  RowClasses of;
  int64_t extent, rows;
  const float *x = nullptr, *labels = nullptr, *matrix = nullptr;

  CORTADO_EVERYWHERE double maximum(int64_t row) const {
    float largest = x[row * extent];
    for (int64_t k = 1; k < extent; ++k)
      largest = x[row * extent + k] > largest ? x[row * extent + k] : largest;
    return largest;
  }
  CORTADO_EVERYWHERE double exponential(int64_t i, double largest) const {
    return exp(x[i] - largest) + x[i] * 0;
  }
  CORTADO_EVERYWHERE double sum(int64_t row, double largest) const {
    double total = 0;
    for (int64_t k = 0; k < extent; ++k) total += exponential(row * extent + k, largest);
    return total;
  }
  // Zero, or not a number where an element of the matrix is not finite; each row looks at its share.
  CORTADO_EVERYWHERE double zero_of_matrix(int64_t row) const {
    double zero = 0;
    for (int64_t k = row; k < extent * extent; k += rows) zero += matrix[k] * 0;
    return zero;
  }
};

// Column 0: losses; column 1: labels that count.
struct InfogainTerm {
  InfogainRows r;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t column) const {
    const int label = r.of.of(r.labels, row);
    if (column == 1) return label >= 0;
    if (label == RowClasses::wrong) return std::numeric_limits<double>::quiet_NaN();
    const double largest = r.maximum(row), sum = r.sum(row, largest);
    double loss = sum * 0 + r.zero_of_matrix(row);
    for (int64_t k = 0; label >= 0 && k < r.extent; ++k) {
      const double probability = r.exponential(row * r.extent + k, largest) / sum;
      loss -= r.matrix[label * r.extent + k] * log(probability > 1e-20 ? probability : 1e-20);
    }
    return loss;
  }
};
struct InfogainCount {
  InfogainRows r;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t) const { return r.of.of(r.labels, row) >= 0; }
};

// What a row's elements share, in double: its largest score, the sum of its exponentials, and that of the
// label's row of the matrix.
struct InfogainRowSums {
  InfogainRows r;
  double* shared;
  CORTADO_EVERYWHERE void operator()(int64_t row) const {
    const int label = r.of.of(r.labels, row);
    const double largest = r.maximum(row);
    double sum = 0;
    for (int64_t k = 0; label >= 0 && k < r.extent; ++k) sum += r.matrix[label * r.extent + k];
    shared[3 * row] = largest, shared[3 * row + 1] = r.sum(row, largest), shared[3 * row + 2] = sum;
  }
};

struct InfogainProbability {
  InfogainRows r;
  const double* shared;
  int64_t begin, size;
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t row = i / size;
    y[i] = static_cast<float>(r.exponential(row * r.extent + begin + i % size, shared[3 * row]) /
                              shared[3 * row + 1]);
  }
};

struct InfogainGradient {
  InfogainRows r;
  const double* shared;
  const float* loss_weight;
  const double* divisor;
  float* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t row = i / r.extent;
    const int label = r.of.of(r.labels, row);
    const double probability = r.exponential(i, shared[3 * row]) / shared[3 * row + 1];
    const double slope =
        label < 0 ? 0 : probability * shared[3 * row + 2] - r.matrix[label * r.extent + i % r.extent];
    dx[i] = static_cast<float>(slope * (*loss_weight / *divisor));
  }
};

class InfogainKernel : public Kernel {
 public:
  InfogainKernel(const InfogainLossOptions& o, const Task& task)
      : rows_{RowClasses(task, o.axis, o.ignore_label), 0, 0},
        backward_(task.has_backward()),
        divisor_(task, o.normalization, o.ignore_label.has_value(), AxisView(task.inputs[0], o.axis).before,
                 AxisView(task.inputs[0], o.axis).after) {
    const AxisView local(task.local_input(0), o.axis);
    rows_.extent = local.extent;
    rows_.rows = local.before * local.after;
  }
  std::string name() const override { return "gpu infogain-loss"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  int64_t forward_sums() const override { return divisor_.travels ? 1 : 0; }
  Bytes saved_bytes() const override { return {backward_ ? int64_t{sizeof(double)} : 0}; }
  Bytes scratch_bytes() const override {
    return loss_scratch(rows_.rows) + Bytes{(1 + 3 * rows_.rows) * int64_t{sizeof(double)}};
  }

  void forward_partial(const Arguments& a) override {
    sum_rows(a.stream, rows_.rows, 1, a.scratch, a.sums, InfogainCount{bound(a)});
  }
  void forward(const Arguments& a) override {
    const InfogainRows rows = bound(a);
    double* const totals = loss_totals(a.scratch, rows.rows);
    sum_rows(a.stream, rows.rows, 2, a.scratch, totals, InfogainTerm{rows});
    for_each(a.stream, 1,
             WriteCountedLoss{totals, divisor_.travels ? a.sums : nullptr, divisor_.fixed, divisor(a),
                              a.outputs[0]});
    if (a.outputs.size() < 2) return;
    const int64_t size = rows.of.own_end - rows.of.own_begin;
    for_each(a.stream, rows.rows, InfogainRowSums{rows, shared(a)});
    for_each(a.stream, rows.rows * size,
             InfogainProbability{rows, shared(a), rows.of.own_begin, size, a.outputs[1]});
  }
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    const InfogainRows rows = bound(a);
    for_each(a.stream, rows.rows, InfogainRowSums{rows, shared(a)});
    for_each(a.stream, rows.rows * rows.extent,
             InfogainGradient{rows, shared(a), a.output_gradients[0], divisor(a), a.input_gradients[0]});
  }

 private:
  InfogainRows bound(const Arguments& a) const {
    InfogainRows rows = rows_;
    rows.x = a.inputs[0], rows.labels = a.inputs[1], rows.matrix = a.inputs[2];
    return rows;
  }
  double* divisor(const Arguments& a) const {
    return backward_ ? reinterpret_cast<double*>(a.saved) : loss_totals(a.scratch, rows_.rows) + 2;
  }
  double* shared(const Arguments& a) const { return loss_totals(a.scratch, rows_.rows) + 3; }

  InfogainRows rows_;
  bool backward_;
  CountedDivisor divisor_;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_infogain_loss(const Task& task) {
  const auto* layer = dynamic_cast<const InfogainLoss*>(&task.layer());
  if (!layer) return {nullptr, "not an InfogainLoss"};
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  if (task.inputs.size() < 3) return {nullptr, "a matrix that is no input"};
  auto refusal = gpu::class_axis_refusal(task.local_input(0), layer->options().axis);
  if (!refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::InfogainKernel>(layer->options(), task);
}

}  // namespace cortado
