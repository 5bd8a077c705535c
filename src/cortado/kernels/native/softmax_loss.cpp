#include "cortado/layers/softmax_loss.h"

#include <cmath>
#include <limits>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/carry.h"
#include "cortado/kernels/loss_divisor.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/native.h"
#include "cortado/kernels/native/rows.h"
#include "cortado/kernels/native/vector_math.h"
#include "cortado/layers/axes.h"

namespace cortado {
namespace native {
namespace {

// Softmax loss of contiguous rows of scores x:
//   forward: loss = sum(log(sum(exp(x - max))) - (x[class] - max)) / normalizer
//   backward: dx = (exp(x - max) / sum - [class]) * loss weight / normalizer
// with label smoothing: forward the mean of the classes' losses beside the label's, backward a smoothed
// [class]. Kept for the backward pass, per row: class, maximum, 1 / sum. Labels, losses and probabilities are
// float.
template <typename E>
class SoftmaxLossKernel : public Kernel {
 public:
  SoftmaxLossKernel(const SoftmaxLossOptions& options, const Task& task)
      : labels_(task.local_input(1)),
        view_(task.local_input(0), options.axis),
        rows_(view_.before * view_.after),
        classes_(task, options.axis, options.ignore_label),
        smoothing_(static_cast<float>(options.label_smoothing)),
        backward_(task.has_backward()),
        divisor_(task, options.normalization, options.ignore_label.has_value(),
                 AxisView(task.inputs[0], options.axis).before,
                 AxisView(task.inputs[0], options.axis).after) {}

  std::string name() const override { return "native softmax-loss"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  Bytes saved_bytes() const override { return {backward_ ? divisor_.saved_bytes() + kept_bytes() : 0}; }
  int64_t forward_sums() const override { return divisor_.sums(); }
  Bytes scratch_bytes() const override { return {loss_bytes() + (backward_ ? 0 : kept_bytes())}; }

  void forward_partial(const Arguments& arguments) override {
    arguments.sums[0] = static_cast<double>(read_labels(arguments));
  }

  void forward(const Arguments& arguments) override {
    Kept kept = kept_of(arguments);
    float* losses = reinterpret_cast<float*>(arguments.scratch);
    int64_t valid = read_labels(arguments);
    const Range own = classes_.own();
    float* probabilities = arguments.outputs.size() > 1 ? arguments.outputs[1] : nullptr;
    parallel_for(rows_, [&](int64_t row) {
      const E* x = elements<E>(arguments.inputs[0]) + row * view_.extent;
      float largest = row_maximum(x, view_.extent);
      float sum = row_sum(view_.extent, [&]<typename V>(int64_t i) {
        const V score = load<V>(x + i);
        return carry(exp(score - largest), score);
      });
      kept.maxima[row] = largest;
      kept.factors[row] = 1 / sum;
      losses[row] = kept.classes[row] < 0 ? 0 * sum : row_loss(x, kept.classes[row], largest, sum);
      if (probabilities)
        write_powers(x + own.begin, probabilities + row * own.size(), own.size(), largest, 1 / sum);
    });
    double loss = 0;
    for (int64_t row = 0; row < rows_; ++row) loss += losses[row];
    arguments.outputs[0][0] = static_cast<float>(
        loss / divisor_.forward(valid, arguments.sums, backward_ ? arguments.saved : nullptr));
  }

  void backward(const Arguments& arguments) override {
    Kept kept = kept_of(arguments);
    int64_t valid =
        std::count_if(kept.classes, kept.classes + rows_, [](int32_t label) { return label >= 0; });
    float scale =
        static_cast<float>(arguments.output_gradients[0][0] / divisor_.backward(valid, arguments.saved));
    parallel_for(rows_, [&](int64_t row) {
      const E* x = elements<E>(arguments.inputs[0]) + row * view_.extent;
      E* dx = elements<E>(arguments.input_gradients[0]) + row * view_.extent;
      if (kept.classes[row] < 0) {
        std::fill_n(dx, view_.extent, E{});
        return;
      }
      const int64_t label = kept.classes[row];
      const float factor = kept.factors[row] * scale;
      const float share = smoothing_ * scale / static_cast<float>(view_.extent);
      const float target = scale - smoothing_ * scale;
      write_powers(x, dx, view_.extent, kept.maxima[row], factor, share);
      if constexpr (std::is_same_v<E, float>) {
        dx[label] -= target;
      } else {  // of what was written, too little is left to subtract from
        store(dx + label, exp(load<float>(x + label) - kept.maxima[row]) * factor - share - target);
      }
    });
  }

 private:
  struct Kept {
    int32_t* classes;
    float *maxima, *factors;
  };

  int64_t loss_bytes() const { return rows_ * int64_t{sizeof(float)}; }
  int64_t kept_bytes() const { return rows_ * int64_t{sizeof(int32_t) + 2 * sizeof(float)}; }
  Kept kept_of(const Arguments& arguments) const {
    std::byte* memory =
        backward_ ? arguments.saved + divisor_.saved_bytes() : arguments.scratch + loss_bytes();
    auto* floats = reinterpret_cast<float*>(memory);
    return {reinterpret_cast<int32_t*>(floats + 2 * rows_), floats, floats + rows_};
  }

  int64_t read_labels(const Arguments& arguments) const {
    return read_classes(labels_, arguments.inputs[1], rows_, classes_, kept_of(arguments).classes);
  }

  float row_loss(const E* x, int32_t label, float largest, float sum) const {
    const float loss = loss_of(load<float>(x + label) - largest, sum);
    if (smoothing_ == 0) return loss;
    double all = 0;
    for (int64_t c = 0; c < view_.extent; ++c) all += loss_of(load<float>(x + c) - largest, sum);
    return static_cast<float>((1 - smoothing_) * loss + smoothing_ * all / static_cast<double>(view_.extent));
  }

  // -log of the probability, which counts as at least the smallest normal number.
  static float loss_of(float score, float sum) {
    static const double largest = -std::log(static_cast<double>(std::numeric_limits<float>::min()));
    double loss = std::log(static_cast<double>(sum)) - score;
    return static_cast<float>(loss > largest ? largest : loss);
  }

  // y = exp(x - largest) * factor - less
  template <typename T>
  static void write_powers(const E* x, T* y, int64_t count, float largest, float factor, float less = 0) {
    by_lanes(0, count,
             [&]<typename V>(int64_t i) { store(y + i, exp(load<V>(x + i) - largest) * factor - less); });
  }

  Shape labels_;
  AxisView view_;
  int64_t rows_;
  LabelClasses classes_;
  float smoothing_;
  bool backward_;
  LossDivisor divisor_;
};

}  // namespace
}  // namespace native

KernelOffer make_native_softmax_loss(const Task& task) {
  const auto* layer = dynamic_cast<const SoftmaxLoss*>(&task.layer());
  if (!layer || task.layers.size() != 1) return {nullptr, "only for SoftmaxWithLoss"};
  if (task.local_input(0).size() == 0) return {nullptr, "an empty tensor"};
  if (!native::contiguous_axis(task.local_input(0), layer->options().axis)) {
    return {nullptr, "the class axis is not contiguous in memory"};
  }
  if (!native::others_f32(task)) return {nullptr, "labels, losses or probabilities that are not f32"};
  return native::offer_by_type(task.input_type(0), [&]<typename E>() {
    return std::make_unique<native::SoftmaxLossKernel<E>>(layer->options(), task);
  });
}

}  // namespace cortado
