#include <cmath>

#include "cortado/kernels/batch_norm_chain.h"
#include "cortado/kernels/carry.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/channels.h"
#include "cortado/kernels/native/functions.h"
#include "cortado/kernels/native/native.h"

namespace cortado {

namespace native {

namespace {

// Per channel: y = (x - mean)*slope + shift before the activation; dx = slope*g - constant - (x -
// mean)*linear.
struct Coefficients {
  float *mean, *inverse, *slope, *shift, *constant, *linear;
};

// Whether a function costs so much that its gradient, once computed, is kept in place of that of the output.
// In bf16 it would be rounded, and the sums of the backward pass would not be those of what is written.
template <typename Function, typename E>
inline constexpr bool keeps_gradient = sizeof(E) == sizeof(float) && std::is_same_v<Function, Swish>;

// y = f(gamma * (x - mean) * inverse + beta), inverse = 1 / sqrt(variance + eps), per channel.
//   backward, g = dy * f':  dbeta = sum g,  dgamma = inverse * sum g*(x - mean),
//   dx = gamma*inverse * (g - dbeta/m - (x - mean)*inverse*dgamma/m); global statistics: gamma*inverse * g
// Where several devices share the layer, they sum the sums of x and of x^2, then those of g and of g*(x -
// mean). Saved: mean and inverse, 2 x C, and this device's addends of the latter sums.
template <typename Function, typename E>
class BatchNormKernel : public Kernel {
 public:
  BatchNormKernel(const Function& function, const BatchNormChain& chain, const Task& task)
      : function_(function),
        chain_(chain),
        x_(task.local_input(0)),
        batch_statistics_(!chain.options.global_statistics(task.phase)),
        summed_(task.cut && !task.local_sums && batch_statistics_),
        backward_(task.has_backward()),
        count_(summed_ ? task.inputs[0][0] * task.inputs[0].count(2) : x_.rows) {}

  std::string name() const override { return "native batch-norm"; }
  Bytes saved_bytes() const override {
    return {backward_ ? 2 * row_bytes() + backward_sums() * int64_t{sizeof(double)} : 0};
  }
  Bytes scratch_bytes() const override {
    return channel_sums_scratch<2>(x_.channels) + Bytes{coefficient_rows * row_bytes()};
  }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  bool overwrites_output_gradients() const override { return keeps_gradient<Function, E>; }
  bool in_place() const override { return true; }

  int64_t forward_sums() const override { return summed_ ? 2 * x_.channels : 0; }
  int64_t backward_sums() const override { return summed_ ? 2 * x_.channels : 0; }

  void forward_partial(const Arguments& arguments) override;
  void forward(const Arguments& arguments) override;
  void backward_partial(const Arguments& arguments) override;
  void backward(const Arguments& arguments) override;

 private:
  static constexpr int coefficient_rows = 6;

  int64_t row_bytes() const { return x_.channels * int64_t{sizeof(float)}; }
  std::byte* sums_scratch(const Arguments& arguments) const {
    return arguments.scratch + coefficient_rows * row_bytes();
  }
  double* own_sums(const Arguments& arguments) const {
    return reinterpret_cast<double*>(arguments.saved + 2 * row_bytes());
  }
  float inverse_deviation(double variance) const;
  Coefficients coefficients(const Arguments& arguments) const;
  void set_affine(const Arguments& arguments, const Coefficients& per_channel) const;
  const double* moments(const Arguments& arguments) const;
  void measure(const Arguments& arguments, const Coefficients& per_channel) const;
  void update_running(const Arguments& arguments, int64_t c, double batch_mean, double batch_variance) const;
  void recall(const Arguments& arguments, const Coefficients& per_channel) const;
  void reduce_gradients(const Arguments& arguments, const Coefficients& per_channel) const;
  void normalize(const Arguments& arguments, const Coefficients& per_channel) const;
  double* gradient_sums(const Arguments& arguments, const Coefficients& per_channel) const;
  void write_gradient(const Arguments& arguments, const Coefficients& per_channel) const;

  Function function_;
  BatchNormChain chain_;
  ChannelRows x_;
  bool batch_statistics_;
  bool summed_;  // other devices hold parts of the batch that the statistics are of
  bool backward_;
  int64_t count_;  // elements that a statistic is over
};

// What a chain without activation has in its place.
struct Identity {
  static constexpr DerivativeOf from = DerivativeOf::input;
  template <typename V>
  V value(V x) const {
    return x;
  }
  template <typename V>
  V gradient(V dy, V) const {
    return dy;
  }
};

// The gradient at `before`, the function's input.
template <typename Function, typename V>
inline V through(const Function& function, V gradient, V before) {
  if constexpr (Function::from == DerivativeOf::output) before = function.value(before);
  return function.gradient(gradient, before);
}

// Memory of the coefficients; mean and inverse lie in `saved` when there is a backward pass.
template <typename Function, typename E>
Coefficients BatchNormKernel<Function, E>::coefficients(const Arguments& arguments) const {
  float* rows = reinterpret_cast<float*>(arguments.scratch);
  float* statistics = backward_ ? reinterpret_cast<float*>(arguments.saved) : rows;
  auto row = [&](int i) { return rows + i * x_.channels; };
  return {statistics, statistics + x_.channels, row(2), row(3), row(4), row(5)};
}

// Returns 1 / sqrt(variance + eps); NaN where the variance is not finite or does not fit in float32.
template <typename Function, typename E>
float BatchNormKernel<Function, E>::inverse_deviation(double variance) const {
  const double inverse = 1 / std::sqrt(variance + chain_.options.eps);
  return carry(static_cast<float>(inverse), static_cast<float>(variance));
}

template <typename Function, typename E>
void BatchNormKernel<Function, E>::set_affine(const Arguments& arguments,
                                              const Coefficients& per_channel) const {
  for (int64_t c = 0; c < x_.channels; ++c) {
    per_channel.slope[c] =
        per_channel.inverse[c] * (chain_.scale ? arguments.parameters[BatchNormChain::gamma][c] : 1.0f);
    per_channel.shift[c] = chain_.bias ? arguments.parameters[BatchNormChain::beta][c] : 0.0f;
  }
}

// Per channel: sum of x - x[0] and of its square, x[0] being the channel's first element. Each block of rows
// is summed around its own first row (which bounds the cancellation by the number of rows) and moved to the
// tensor's first row in double.
template <typename Function, typename E>
const double* BatchNormKernel<Function, E>::moments(const Arguments& arguments) const {
  const E* x = elements<E>(arguments.inputs[0]);
  const int64_t channels = x_.channels;
  return channel_sums<2>(
      x_, sums_scratch(arguments),
      [x, channels]<typename V>(int64_t first, int64_t row, int64_t c) {
        V difference = load<V>(x + row * channels + c) - load<V>(x + first * channels + c);
        return std::array<V, 2>{difference, difference * difference};
      },
      [x, channels](int64_t first, int64_t rows, const float* block, double* sums) {
        for (int64_t c = 0; c < channels; ++c) {
          double offset = double{load<float>(x + first * channels + c)} - double{load<float>(x + c)},
                 sum = block[c];
          sums[c] += sum + rows * offset;
          sums[channels + c] += block[channels + c] + offset * (2 * sum + rows * offset);
        }
      });
}

template <typename Function, typename E>
void BatchNormKernel<Function, E>::forward_partial(const Arguments& arguments) {
  const double* sums = moments(arguments);
  const E* x = elements<E>(arguments.inputs[0]);
  const int64_t channels = x_.channels;
  for (int64_t c = 0; c < channels; ++c) {
    const double first = load<float>(x + c), rows = static_cast<double>(x_.rows);
    arguments.sums[c] = sums[c] + rows * first;
    arguments.sums[channels + c] = sums[channels + c] + first * (2 * sums[c] + rows * first);
  }
}

// Mean and deviation of the batch, and the running ones.
template <typename Function, typename E>
void BatchNormKernel<Function, E>::measure(const Arguments& arguments,
                                           const Coefficients& per_channel) const {
  const int64_t channels = x_.channels;
  const E* x = elements<E>(arguments.inputs[0]);
  const double* sums = summed_ ? arguments.sums : moments(arguments);
  const double count = static_cast<double>(count_);
  for (int64_t c = 0; c < channels; ++c) {
    double offset = sums[c] / count;
    double batch_mean = (summed_ ? 0 : load<float>(x + c)) + offset;
    double batch_variance = std::max(sums[channels + c] / count - offset * offset, 0.0);
    per_channel.mean[c] = static_cast<float>(batch_mean);
    per_channel.inverse[c] = inverse_deviation(batch_variance);
    if (!arguments.again) update_running(arguments, c, batch_mean, batch_variance);
  }
  if (arguments.again) return;
  float& factor = *arguments.parameters[2];
  factor = static_cast<float>(chain_.options.moving_average_fraction * factor + 1);
}

template <typename Function, typename E>
void BatchNormKernel<Function, E>::update_running(const Arguments& arguments, int64_t c, double batch_mean,
                                                  double batch_variance) const {
  const double count = static_cast<double>(count_);
  const double unbiased = count_ > 1 ? count / (count - 1) : 1;
  const double kept = chain_.options.moving_average_fraction;
  float &mean = arguments.parameters[0][c], &variance = arguments.parameters[1][c];
  mean = static_cast<float>(kept * mean + batch_mean);
  variance = static_cast<float>(kept * variance + unbiased * batch_variance);
}

// Mean and deviation from the running statistics.
template <typename Function, typename E>
void BatchNormKernel<Function, E>::recall(const Arguments& arguments, const Coefficients& per_channel) const {
  const float factor = *arguments.parameters[2];
  const double weight = factor == 0 ? 0 : carry(1.0 / factor, double{factor});
  for (int64_t c = 0; c < x_.channels; ++c) {
    double variance = weight * arguments.parameters[1][c];
    per_channel.mean[c] = static_cast<float>(weight * arguments.parameters[0][c]);
    per_channel.inverse[c] = inverse_deviation(variance);
  }
}

template <typename Function, typename E>
void BatchNormKernel<Function, E>::normalize(const Arguments& arguments,
                                             const Coefficients& per_channel) const {
  const E* x = elements<E>(arguments.inputs[0]);
  E* y = elements<E>(arguments.outputs[0]);
  map_rows(y, x_, x == y, [=, function = function_]<typename V>(int64_t i, int64_t c) {
    V normal = (load<V>(x + i) - load<V>(per_channel.mean + c)) * load<V>(per_channel.slope + c) +
               load<V>(per_channel.shift + c);
    return carry(function.value(normal), normal);
  });
}

template <typename Function, typename E>
void BatchNormKernel<Function, E>::forward(const Arguments& arguments) {
  const Coefficients per_channel = coefficients(arguments);
  if (batch_statistics_) {
    measure(arguments, per_channel);
  } else {
    recall(arguments, per_channel);
  }
  set_affine(arguments, per_channel);
  normalize(arguments, per_channel);
}

// Per channel: sum of g, sum of g * (x - mean). Where g is kept, leaves it in place of dy.
template <typename Function, typename E>
double* BatchNormKernel<Function, E>::gradient_sums(const Arguments& arguments,
                                                    const Coefficients& per_channel) const {
  const E* x = elements<E>(arguments.inputs[0]);
  E* dy = elements<E>(arguments.output_gradients[0]);
  return channel_sums<2>(x_, sums_scratch(arguments), [=, this]<typename V>(int64_t, int64_t row, int64_t c) {
    const int64_t i = row * x_.channels + c;
    V centred = load<V>(x + i) - load<V>(per_channel.mean + c);
    V before = centred * load<V>(per_channel.slope + c) + load<V>(per_channel.shift + c);
    V gradient = through(function_, load<V>(dy + i), before);
    if constexpr (keeps_gradient<Function, E>) store(dy + i, gradient);
    return std::array<V, 2>{gradient, gradient * centred};
  });
}

template <typename Function, typename E>
void BatchNormKernel<Function, E>::backward_partial(const Arguments& arguments) {
  const Coefficients per_channel = coefficients(arguments);
  set_affine(arguments, per_channel);
  const double* sums = gradient_sums(arguments, per_channel);
  std::copy_n(sums, backward_sums(), arguments.sums);
  std::copy_n(sums, backward_sums(), own_sums(arguments));
}

// Gradients of gamma and beta, and the coefficients of dx that depend on the sums.
template <typename Function, typename E>
void BatchNormKernel<Function, E>::reduce_gradients(const Arguments& arguments,
                                                    const Coefficients& per_channel) const {
  const int64_t channels = x_.channels;
  std::fill_n(per_channel.constant, channels, 0.0f);
  std::fill_n(per_channel.linear, channels, 0.0f);
  if (!batch_statistics_ && !chain_.scale && !keeps_gradient<Function, E>) return;
  // This device's sums are its addends of the parameters' gradients; those of all devices make dx.
  const double* own = summed_ ? own_sums(arguments) : gradient_sums(arguments, per_channel);
  const double* all = summed_ ? arguments.sums : own;
  const double count = static_cast<double>(count_);
  float* gamma_gradient = chain_.scale ? arguments.parameter_gradients[BatchNormChain::gamma] : nullptr;
  float* beta_gradient = chain_.bias ? arguments.parameter_gradients[BatchNormChain::beta] : nullptr;
  for (int64_t c = 0; c < channels; ++c) {
    const double inverse = per_channel.inverse[c], slope = per_channel.slope[c];
    if (gamma_gradient) gamma_gradient[c] = static_cast<float>(inverse * own[channels + c]);
    if (beta_gradient) beta_gradient[c] = static_cast<float>(own[c]);
    if (!batch_statistics_) continue;
    per_channel.constant[c] = static_cast<float>(slope * all[c] / count);
    per_channel.linear[c] = static_cast<float>(slope * inverse * inverse * all[channels + c] / count);
  }
}

template <typename Function, typename E>
void BatchNormKernel<Function, E>::write_gradient(const Arguments& arguments,
                                                  const Coefficients& per_channel) const {
  const E *x = elements<E>(arguments.inputs[0]), *dy = elements<E>(arguments.output_gradients[0]);
  E* dx = elements<E>(arguments.input_gradients[0]);
  map_rows(dx, x_, dx == dy, [=, function = function_]<typename V>(int64_t i, int64_t c) {
    V centred = load<V>(x + i) - load<V>(per_channel.mean + c);
    V slope = load<V>(per_channel.slope + c);
    V gradient = load<V>(dy + i);
    if constexpr (!keeps_gradient<Function, E>)
      gradient = through(function, gradient, centred * slope + load<V>(per_channel.shift + c));
    return slope * gradient - (centred * load<V>(per_channel.linear + c) + load<V>(per_channel.constant + c));
  });
}

template <typename Function, typename E>
void BatchNormKernel<Function, E>::backward(const Arguments& arguments) {
  const Coefficients per_channel = coefficients(arguments);
  set_affine(arguments, per_channel);
  reduce_gradients(arguments, per_channel);
  if (!arguments.input_gradients[0]) return;
  write_gradient(arguments, per_channel);
}

}  // namespace

}  // namespace native

KernelOffer make_native_batch_norm(const Task& task) {
  std::string refusal;
  if (task.inputs.size() != 1) return {nullptr, "more than one input"};
  if (task.inputs[0].rank() < 2) return {nullptr, "a tensor without channel axis"};
  auto chain = batch_norm_chain(task, refusal);
  if (!chain) return {nullptr, refusal};
  const auto offer = [&]<typename Function>(const Function& function) {
    return native::offer_by_type(task, [&]<typename E>() {
      return std::make_unique<native::BatchNormKernel<Function, E>>(function, *chain, task);
    });
  };
  if (!chain->activation) return offer(native::Identity());
  return std::visit([&](const auto& options) { return offer(native::native_function(options)); },
                    *chain->activation);
}

}  // namespace cortado
