#include <cmath>

#include "cortado/kernels/batch_norm_chain.h"
#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/functions.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/sums.h"
#include "cortado/kernels/gpu/values.h"

namespace cortado {
namespace gpu {
namespace {

// x and x^2.
template <typename E>
struct RowMoments {
  const E* x;
  int64_t channels;
  CORTADO_EVERYWHERE SumsOf<2> operator()(int64_t row, int64_t c) const {
    const double value = value_of(x[row * channels + c]);
    return {{value, value * value}};
  }
};

// Per channel: y = (x - mean)*slope + shift before the activation; dx = slope*g - constant - (x -
// mean)*linear.
struct Coefficients {
  float *mean, *inverse;  // 1 / sqrt(variance + eps)
  float *slope, *shift, *constant, *linear;
};

// The affine map of a channel.
struct ChannelMap {
  float mean, slope, shift;
  CORTADO_EVERYWHERE ChannelMap(const Coefficients& per, int64_t c)
      : mean(per.mean[c]), slope(per.slope[c]), shift(per.shift[c]) {}
  CORTADO_EVERYWHERE float operator()(float x) const { return (x - mean) * slope + shift; }
};

// Sets the coefficients of the forward pass. Gamma and beta: null for 1 and 0. What is not finite, or does
// not fit in a float, makes the channel not a number.
struct SetForward {
  Coefficients per;
  const float *gamma, *beta;
  CORTADO_EVERYWHERE void statistics(int64_t c, double mean, double variance, double eps) const {
    per.mean[c] = static_cast<float>(mean);
    per.inverse[c] = static_cast<float>(1 / sqrt(variance + eps)) + static_cast<float>(variance) * 0;
    affine(c);
  }
  CORTADO_EVERYWHERE void affine(int64_t c) const {
    per.slope[c] = per.inverse[c] * (gamma ? gamma[c] : 1.0F);
    per.shift[c] = beta ? beta[c] : 0.0F;
  }
};
// `mean`, `variance` and `factor`: the running ones.
struct SetOfRunning {
  SetForward set;
  const float *mean, *variance, *factor;
  double eps;
  CORTADO_EVERYWHERE void operator()(int64_t c) const {
    const double f = factor[0], weight = f == 0 ? 0 : 1 / f + f * 0;
    set.statistics(c, weight * mean[c], weight * variance[c], eps);
  }
};
// Of sums over `count` elements of the batch; updates the running ones (null: leaves them).
struct SetOfBatch {
  SetForward set;
  const double* sums;
  int64_t channels;
  double count, eps, fraction;
  float *mean, *variance, *factor;
  CORTADO_EVERYWHERE void operator()(int64_t c) const {
    const double batch_mean = sums[c] / count,
                 difference = sums[channels + c] / count - batch_mean * batch_mean,
                 batch_variance = difference < 0 ? 0 : difference;
    set.statistics(c, batch_mean, batch_variance, eps);
    if (mean == nullptr) return;
    const double unbiased = count > 1 ? count / (count - 1) : 1;
    mean[c] = static_cast<float>(fraction * mean[c] + batch_mean);
    variance[c] = static_cast<float>(fraction * variance[c] + unbiased * batch_variance);
    if (c == 0) factor[0] = static_cast<float>(fraction * factor[0] + 1);
  }
};
struct SetAffine {
  SetForward set;
  CORTADO_EVERYWHERE void operator()(int64_t c) const { set.affine(c); }
};

// What a chain without activation has in its place.
struct Identity {
  CORTADO_EVERYWHERE float value(float x) const { return x; }
  CORTADO_EVERYWHERE float slope(float) const { return 1; }
};

template <typename Function, typename E>
struct NormalizedValue {
  Function function;
  ChannelMap map;
  const E* x;  // of the channel, in the first row
  int64_t channels;
  CORTADO_EVERYWHERE E operator()(int64_t row) const {
    const float normal = map(value_of(x[row * channels]));
    return rounded<E>(function.value(normal) + normal * 0);
  }
};
template <typename Function, typename E>
struct Normalize {
  Function function;
  Coefficients per;
  const E* x;
  int64_t channels;
  CORTADO_EVERYWHERE NormalizedValue<Function, E> operator()(int64_t c) const {
    return {function, {per, c}, x + c, channels};
  }
};

// g and g * (x - mean): what devices of all kinds add up where they share the layer (native/batch_norm.cpp).
template <typename Function, typename E>
struct RowGradients {
  Function function;
  Coefficients per;
  const E *x, *dy;
  int64_t channels;
  CORTADO_EVERYWHERE SumsOf<2> operator()(int64_t row, int64_t c) const {
    const int64_t i = row * channels + c;
    const ChannelMap map(per, c);
    const float value = value_of(x[i]);
    const double g = value_of(dy[i]) * function.slope(map(value));
    return {{g, g * (value - map.mean)}};
  }
};
// `own`: this device's sums, `all` those of all devices; null: nothing depends on them. Gradients may be
// null.
struct SetBackward {
  Coefficients per;
  const double *own, *all;
  int64_t channels;
  double count;
  float *gamma_gradient, *beta_gradient;
  CORTADO_EVERYWHERE void operator()(int64_t c) const {
    const double inverse = per.inverse[c], slope = per.slope[c];
    if (gamma_gradient) gamma_gradient[c] = static_cast<float>(inverse * own[channels + c]);
    if (beta_gradient) beta_gradient[c] = static_cast<float>(own[c]);
    per.constant[c] = all ? static_cast<float>(slope * all[c] / count) : 0.0F;
    per.linear[c] = all ? static_cast<float>(slope * inverse * inverse * all[channels + c] / count) : 0.0F;
  }
};
template <typename Function, typename E>
struct NormalizedGradient {
  Function function;
  ChannelMap map;
  float linear, constant;
  const E *x, *dy;  // of the channel, in the first row
  int64_t channels;
  CORTADO_EVERYWHERE E operator()(int64_t row) const {
    const int64_t i = row * channels;
    const float value = value_of(x[i]), gradient = value_of(dy[i]) * function.slope(map(value));
    return rounded<E>(map.slope * gradient - ((value - map.mean) * linear + constant));
  }
};
template <typename Function, typename E>
struct NormalizeGradient {
  Function function;
  Coefficients per;
  const E *x, *dy;
  int64_t channels;
  CORTADO_EVERYWHERE NormalizedGradient<Function, E> operator()(int64_t c) const {
    return {function, {per, c}, per.linear[c], per.constant[c], x + c, dy + c, channels};
  }
};

// Saved: mean and inverse, and where devices share the layer this one's sums of the backward pass.
template <typename Function, typename E>
class BatchNormKernel : public Kernel {
 public:
  BatchNormKernel(const Function& function, const BatchNormChain& chain, const Task& task)
      : function_(function),
        chain_(chain),
        global_(chain.options.global_statistics(task.phase)),
        summed_(task.cut && !task.local_sums && !global_),
        backward_(task.has_backward()) {
    const Part part = part_of(task.output_boxes[0]);
    channels_ = part.c.size;
    rows_ = part.elements() / channels_;
    const Part whole = part_of(Box::whole(task.inputs[0]));
    count_ = static_cast<double>(summed_ ? whole.elements() / whole.c.size : rows_);
  }
  std::string name() const override { return "gpu batch-norm"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  bool in_place() const override { return true; }
  int64_t forward_sums() const override { return summed_ ? 2 * channels_ : 0; }
  int64_t backward_sums() const override { return summed_ ? 2 * channels_ : 0; }
  Bytes saved_bytes() const override {
    return {backward_ ? 2 * row_bytes() + backward_sums() * int64_t{sizeof(double)} : 0};
  }
  Bytes scratch_bytes() const override {
    return totals_begin() + Bytes{2 * channels_ * int64_t{sizeof(double)} + coefficient_rows * row_bytes()};
  }

  void forward_partial(const Arguments& a) override { add_moments(a, a.sums); }
  void forward(const Arguments& a) override {
    const Coefficients per = coefficients(a);
    if (global_) {
      for_each(a.stream, channels_,
               SetOfRunning{set_forward(a, per), a.parameters[0], a.parameters[1], a.parameters[2],
                            chain_.options.eps});
    } else {
      if (!summed_) add_moments(a, totals(a));
      float* const* const running = a.again ? nullptr : a.parameters.data();
      for_each(
          a.stream, channels_,
          SetOfBatch{set_forward(a, per), summed_ ? a.sums : totals(a), channels_, count_, chain_.options.eps,
                     chain_.options.moving_average_fraction, running ? running[0] : nullptr,
                     running ? running[1] : nullptr, running ? running[2] : nullptr});
    }
    for_each_in_columns(a.stream, in_rows(a.outputs[0]),
                        Normalize<Function, E>{function_, per, elements<E>(a.inputs[0]), channels_});
  }

  void backward_partial(const Arguments& a) override {
    set_affine(a);
    add_gradients(a, a.sums);
    for_each_value(a.stream, backward_sums(), own_sums(a), CopyValue<double>{a.sums});
  }
  void backward(const Arguments& a) override {
    set_affine(a);
    const double* own = summed_ ? own_sums(a) : totals(a);
    float* const gamma = chain_.scale ? a.parameter_gradients[BatchNormChain::gamma] : nullptr;
    float* const beta = chain_.bias ? a.parameter_gradients[BatchNormChain::beta] : nullptr;
    if (!summed_ && (!global_ || gamma || beta)) add_gradients(a, totals(a));
    for_each(a.stream, channels_,
             SetBackward{coefficients(a), own,
                         global_   ? nullptr
                         : summed_ ? a.sums
                                   : own,
                         channels_, count_, gamma, beta});
    if (!a.input_gradients[0]) return;
    for_each_in_columns(a.stream, in_rows(a.input_gradients[0]),
                        NormalizeGradient<Function, E>{function_, coefficients(a), elements<E>(a.inputs[0]),
                                                       output_gradient(a), channels_});
  }

 private:
  static constexpr int coefficient_rows = 6;

  int64_t row_bytes() const { return channels_ * int64_t{sizeof(float)}; }
  Bytes totals_begin() const { return sum_scratch(rows_, channels_, 2); }
  double* totals(const Arguments& a) const {
    return reinterpret_cast<double*>(a.scratch + totals_begin().count);
  }
  double* own_sums(const Arguments& a) const { return reinterpret_cast<double*>(a.saved + 2 * row_bytes()); }
  Coefficients coefficients(const Arguments& a) const {
    auto* const rows = reinterpret_cast<float*>(totals(a) + 2 * channels_);
    auto* const statistics = backward_ ? reinterpret_cast<float*>(a.saved) : rows;
    const auto row = [&](int64_t i) { return rows + i * channels_; };
    return {statistics, statistics + channels_, row(2), row(3), row(4), row(5)};
  }
  SetForward set_forward(const Arguments& a, const Coefficients& per) const {
    return {per, chain_.scale ? a.parameters[BatchNormChain::gamma] : nullptr,
            chain_.bias ? a.parameters[BatchNormChain::beta] : nullptr};
  }
  void set_affine(const Arguments& a) const {
    for_each(a.stream, channels_, SetAffine{set_forward(a, coefficients(a))});
  }
  Columns<E> in_rows(float* to) const { return {rows_, channels_, elements<E>(to), channels_}; }
  static const E* output_gradient(const Arguments& a) { return elements<E>(a.output_gradients[0]); }
  void add_moments(const Arguments& a, double* to) const {
    sum_rows_of<2>(a.stream, rows_, channels_, a.scratch, to,
                   RowMoments<E>{elements<E>(a.inputs[0]), channels_});
  }
  void add_gradients(const Arguments& a, double* to) const {
    sum_rows_of<2>(a.stream, rows_, channels_, a.scratch, to,
                   RowGradients<Function, E>{function_, coefficients(a), elements<E>(a.inputs[0]),
                                             output_gradient(a), channels_});
  }

  Function function_;
  BatchNormChain chain_;
  bool global_;
  bool summed_;  // the statistics are of the batch, and other devices hold parts of it
  bool backward_;
  int64_t channels_, rows_;
  double count_;  // elements that a statistic is over
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_batch_norm(const Task& task) {
  std::string refusal;
  const auto chain = batch_norm_chain(task, refusal);
  if (!chain) return {nullptr, std::move(refusal)};
  if (refusal = gpu::chain_tensors_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  const auto offer = [&]<typename Function>(const Function& function) {
    return with_tensor_type(task.input_type(0), [&]<typename E>() {
      return gpu::offered<gpu::BatchNormKernel<Function, E>>(function, *chain, task);
    });
  };
  if (!chain->activation) return offer(gpu::Identity());
  return std::visit([&](const auto& options) { return offer(gpu::gpu_function(options)); },
                    *chain->activation);
}

}  // namespace cortado
