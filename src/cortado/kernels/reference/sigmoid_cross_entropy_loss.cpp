#include "cortado/layers/sigmoid_cross_entropy_loss.h"

#include <algorithm>
#include <cmath>

#include "cortado/kernels/carry.h"
#include "cortado/kernels/loss_divisor.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"

namespace cortado {
namespace {

using reference::Spoken;

template <typename T>
class SigmoidCrossEntropyLossReference : public KernelOf<T> {
 public:
  explicit SigmoidCrossEntropyLossReference(const Task& task)
      : options_(dynamic_cast<const SigmoidCrossEntropyLoss&>(task.layer()).options()),
        scores_(task.local_input(0)),
        targets_(task.local_input(1)),
        divisor_(task, options_.normalization, options_.ignore_label.has_value(), task.inputs[0][0],
                 task.inputs[0].count(1)) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  int64_t forward_sums() const override { return divisor_.sums(); }
  Bytes saved_bytes() const override { return {divisor_.saved_bytes()}; }

  void forward_partial(const ArgumentsOf<T>& arguments) override {
    arguments.sums[0] = static_cast<double>(for_each_valid(arguments, [](int64_t, double, double) {}));
  }

  // -(t log(s) + (1 - t) log(1 - s)) = max(x, 0) - x t + log(1 + exp(-|x|)), which cannot overflow.
  void forward(const ArgumentsOf<T>& arguments) override {
    double loss = 0;
    for (int64_t i = 0; i < scores_.size(); ++i)
      loss = carry(loss, static_cast<double>(arguments.inputs[0][i]));
    int64_t valid = for_each_valid(arguments, [&](int64_t, double x, double t) {
      loss += std::max(x, 0.0) - x * t + std::log1p(std::exp(-std::abs(x)));
    });
    arguments.outputs[0][0] = static_cast<T>(loss / divisor_.forward(valid, arguments.sums, arguments.saved));
  }

  // dx = (sigmoid(x) - t) * loss weight / normalizer, 0 where the target is ignored
  void backward(const ArgumentsOf<T>& arguments) override {
    if (!arguments.input_gradients[0]) return;
    int64_t valid = for_each_valid(arguments, [](int64_t, double, double) {});
    double scale =
        static_cast<double>(arguments.output_gradients[0][0]) / divisor_.backward(valid, arguments.saved);
    Spoken<T> dx(scores_, arguments.input_gradients[0]);
    for (int64_t i = 0; i < scores_.size(); ++i) dx[i] = 0;
    for_each_valid(arguments, [&](int64_t i, double x, double t) {
      dx[i] = static_cast<T>((1 / (1 + std::exp(-x)) - t) * scale);
    });
  }

 private:
  // work(i, x, t) for every element whose target is not ignored; returns how many they are.
  template <typename Work>
  int64_t for_each_valid(const ArgumentsOf<T>& arguments, Work&& work) const {
    Spoken<const T> x(scores_, arguments.inputs[0]), t(targets_, arguments.inputs[1]);
    int64_t valid = 0;
    for (int64_t i = 0; i < scores_.size(); ++i) {
      if (options_.ignore_label && std::trunc(t[i]) == *options_.ignore_label) continue;
      work(i, x[i], t[i]);
      ++valid;
    }
    return valid;
  }

  SigmoidCrossEntropyLossOptions options_;
  Shape scores_, targets_;
  LossDivisor divisor_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_sigmoid_cross_entropy_loss_reference(const Task& task) {
  return std::make_unique<SigmoidCrossEntropyLossReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_sigmoid_cross_entropy_loss_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_sigmoid_cross_entropy_loss_reference<double>(const Task&);

}  // namespace cortado
