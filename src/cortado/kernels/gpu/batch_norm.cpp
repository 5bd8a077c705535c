#include "cortado/layers/batch_norm.h"

#include <cmath>

#include "cortado/kernels/carry.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/sums.h"
#include "cortado/kernels/gpu/values.h"

namespace cortado {
namespace gpu {
namespace {

// What rows of channels add up to, per channel.
template <typename E>
struct RowValue {
  const E* x;
  int64_t channels;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t c) const {
    return value_of(x[row * channels + c]);
  }
};
template <typename E>
struct RowSquare {
  RowValue<E> value;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t c) const { return value(row, c) * value(row, c); }
};
template <typename E>
struct RowVariance {
  RowValue<E> value;
  const double* mean;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t c) const {
    const double difference = value(row, c) - mean[c];
    return difference * difference;
  }
};

// Per channel. `inverse`: 1 / sqrt(variance + eps).
struct Statistics {
  double *mean, *variance, *inverse;
};
// dy * (x - mean): what devices of all kinds add up where they share the layer (native/batch_norm.cpp)
template <typename E>
struct RowCorrelation {
  RowValue<E> x, dy;
  Statistics of;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t c) const {
    return dy(row, c) * (x(row, c) - of.mean[c]);
  }
};

CORTADO_EVERYWHERE inline double inverse_deviation(double variance, double eps) {
  return 1 / (sqrt(variance + eps) + variance * 0);
}

struct SetMean {
  Statistics to;
  const double* sums;
  double count;
  CORTADO_EVERYWHERE void operator()(int64_t c) const { to.mean[c] = sums[c] / count; }
};
struct SetVariance {
  Statistics to;
  const double* sums;
  double count, eps;
  CORTADO_EVERYWHERE void operator()(int64_t c) const {
    to.variance[c] = sums[c] / count;
    to.inverse[c] = inverse_deviation(to.variance[c], eps);
  }
};
// Of sums of x and of x^2 over all devices.
struct SetOfSums {
  Statistics to;
  const double *sums, *squares;
  double count, eps;
  CORTADO_EVERYWHERE void operator()(int64_t c) const {
    const double mean = sums[c] / count, variance = squares[c] / count - mean * mean;
    to.mean[c] = mean;
    to.variance[c] = variance < 0 ? 0 : variance;
    to.inverse[c] = inverse_deviation(to.variance[c], eps);
  }
};
struct SetOfRunning {
  Statistics to;
  const float *mean, *variance, *factor;
  double eps;
  CORTADO_EVERYWHERE void operator()(int64_t c) const {
    const double f = factor[0], scale = f == 0 ? 0 : 1 / f + f * 0;
    to.mean[c] = scale * mean[c];
    to.variance[c] = scale * variance[c];
    to.inverse[c] = inverse_deviation(to.variance[c], eps);
  }
};
struct UpdateRunning {
  Statistics batch;
  float *mean, *variance, *factor;
  double fraction, correction;
  CORTADO_EVERYWHERE void operator()(int64_t c) const {
    mean[c] = static_cast<float>(fraction * mean[c] + batch.mean[c]);
    variance[c] = static_cast<float>(fraction * variance[c] + correction * batch.variance[c]);
    if (c == 0) factor[0] = static_cast<float>(fraction * factor[0] + 1);
  }
};

template <typename E>
struct Normalize {
  Statistics by;
  const E* x;
  int64_t channels;
  E* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t c = i % channels;
    y[i] = rounded<E>(static_cast<float>((value_of(x[i]) - by.mean[c]) * by.inverse[c]));
  }
};
// `sums`: of dy and of dy * (x - mean); null: the statistics are constants.
template <typename E>
struct NormalizeGradient {
  Statistics by;
  const double* sums;
  double count;
  const E *x, *dy;
  int64_t channels;
  E* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t c = i % channels;
    const double y = (value_of(x[i]) - by.mean[c]) * by.inverse[c];
    const double mean = sums ? sums[c] / count : 0,
                 correlation = sums ? sums[channels + c] * by.inverse[c] / count : 0;
    dx[i] = rounded<E>(static_cast<float>((value_of(dy[i]) - mean - correlation * y) * by.inverse[c]));
  }
};

class BatchNormKernel : public Kernel {
 public:
  BatchNormKernel(const BatchNormOptions& options, const Task& task)
      : options_(options),
        global_(options.global_statistics(task.phase)),
        summed_(task.cut && !task.local_sums && !global_),
        backward_(task.has_backward()),
        type_(task.input_type(0)) {
    const Part part = part_of(task.output_boxes[0]);
    channels_ = part.c.size;
    rows_ = part.elements() / channels_;
    const Part whole = part_of(Box::whole(task.inputs[0]));
    count_ = static_cast<double>(summed_ ? whole.elements() / whole.c.size : rows_);
  }
  std::string name() const override { return "gpu batch-norm"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  int64_t forward_sums() const override { return summed_ ? 2 * channels_ : 0; }
  int64_t backward_sums() const override { return summed_ ? 2 * channels_ : 0; }
  Bytes saved_bytes() const override { return {backward_ ? statistics_bytes() : 0}; }
  Bytes scratch_bytes() const override {
    return sum_scratch(rows_, channels_) +
           Bytes{2 * channels_ * int64_t{sizeof(double)} + statistics_bytes()};
  }

  void forward_partial(const Arguments& a) override {
    with_tensor_type(type_, [&]<typename E>() {
      add_up(a, a.sums, values<E>(a.inputs[0]));
      add_up(a, a.sums + channels_, RowSquare<E>{values<E>(a.inputs[0])});
    });
  }
  void forward(const Arguments& a) override {
    with_tensor_type(type_, [&]<typename E>() { normalize<E>(a); });
  }
  void backward_partial(const Arguments& a) override {
    with_tensor_type(type_, [&]<typename E>() { add_gradients<E>(a, a.sums); });
  }
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    with_tensor_type(type_, [&]<typename E>() { normalize_gradient<E>(a); });
  }

 private:
  template <typename E>
  void normalize(const Arguments& a) const {
    const Statistics statistics = statistics_of(a);
    if (global_) {
      for_each(a.stream, channels_,
               SetOfRunning{statistics, a.parameters[0], a.parameters[1], a.parameters[2], options_.eps});
    } else if (summed_) {
      for_each(a.stream, channels_, SetOfSums{statistics, a.sums, a.sums + channels_, count_, options_.eps});
    } else {
      add_up(a, totals(a), values<E>(a.inputs[0]));
      for_each(a.stream, channels_, SetMean{statistics, totals(a), count_});
      add_up(a, totals(a), RowVariance<E>{values<E>(a.inputs[0]), statistics.mean});
      for_each(a.stream, channels_, SetVariance{statistics, totals(a), count_, options_.eps});
    }
    for_each(a.stream, rows_ * channels_,
             Normalize<E>{statistics, elements<E>(a.inputs[0]), channels_, elements<E>(a.outputs[0])});
    if (global_ || a.again) return;
    const double correction = count_ > 1 ? count_ / (count_ - 1) : 1;
    for_each(a.stream, channels_,
             UpdateRunning{statistics, a.parameters[0], a.parameters[1], a.parameters[2],
                           options_.moving_average_fraction, correction});
  }
  template <typename E>
  void normalize_gradient(const Arguments& a) const {
    const double* sums = global_ ? nullptr : summed_ ? a.sums : totals(a);
    if (!global_ && !summed_) add_gradients<E>(a, totals(a));
    for_each(a.stream, rows_ * channels_,
             NormalizeGradient<E>{statistics_of(a), sums, count_, elements<E>(a.inputs[0]),
                                  elements<E>(a.output_gradients[0]), channels_,
                                  elements<E>(a.input_gradients[0])});
  }
  int64_t statistics_bytes() const { return 3 * channels_ * int64_t{sizeof(double)}; }
  template <typename E>
  RowValue<E> values(const float* x) const {
    return {elements<E>(x), channels_};
  }
  double* totals(const Arguments& a) const {
    return reinterpret_cast<double*>(a.scratch + sum_scratch(rows_, channels_).count);
  }
  Statistics statistics_of(const Arguments& a) const {
    auto* mean = backward_ ? reinterpret_cast<double*>(a.saved) : totals(a) + 2 * channels_;
    return {mean, mean + channels_, mean + 2 * channels_};
  }
  template <typename Value>
  void add_up(const Arguments& a, double* to, const Value& value) const {
    sum_rows(a.stream, rows_, channels_, a.scratch, to, value);
  }
  template <typename E>
  void add_gradients(const Arguments& a, double* to) const {
    const RowValue<E> dy = values<E>(a.output_gradients[0]);
    add_up(a, to, dy);
    add_up(a, to + channels_, RowCorrelation<E>{values<E>(a.inputs[0]), dy, statistics_of(a)});
  }

  BatchNormOptions options_;
  bool global_;
  bool summed_;  // the statistics are of the batch, and other devices hold parts of it
  bool backward_;
  ElementType type_;
  int64_t channels_, rows_;
  double count_;  // elements that a statistic is over
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_batch_norm(const Task& task) {
  const auto* layer = dynamic_cast<const BatchNorm*>(&task.layer());
  if (!layer) return {nullptr, "not a BatchNorm"};
  if (auto refusal = gpu::one_type_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::BatchNormKernel>(layer->options(), task);
}

}  // namespace cortado
