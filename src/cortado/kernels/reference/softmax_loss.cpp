#include "cortado/layers/softmax_loss.h"

#include <cmath>
#include <limits>

#include "cortado/kernels/carry.h"
#include "cortado/kernels/labels.h"
#include "cortado/kernels/loss_divisor.h"
#include "cortado/kernels/reference/probabilities.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"
#include "cortado/layers/axes.h"

namespace cortado {
namespace {

using reference::Spoken;

template <typename T>
class SoftmaxLossReference : public KernelOf<T> {
 public:
  explicit SoftmaxLossReference(const Task& task)
      : options_(dynamic_cast<const SoftmaxLoss&>(task.layer()).options()),
        scores_(task.local_input(0)),
        labels_(task.local_input(1)),
        view_(scores_, options_.axis),
        whole_(task.inputs[0], options_.axis),
        classes_(task, options_.axis, options_.ignore_label),
        probabilities_(task.outputs.size() > 1 ? task.local_output(1) : Shape{}),
        divisor_(task, options_.normalization, options_.ignore_label.has_value(), whole_.before,
                 whole_.after) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  int64_t forward_sums() const override { return divisor_.sums(); }
  Bytes saved_bytes() const override { return {divisor_.saved_bytes()}; }

  void forward_partial(const ArgumentsOf<T>& arguments) override {
    arguments.sums[0] = static_cast<double>(for_each_position(arguments.inputs[1], [](auto...) {}));
  }

  void forward(const ArgumentsOf<T>& arguments) override {
    std::vector<double> probabilities = softmax(arguments.inputs[0]);
    double loss = 0;
    int64_t valid = for_each_position(arguments.inputs[1], [&](int64_t i, int64_t j, auto label) {
      loss = carry(loss, probabilities[index(i, 0, j)]);
      if (!label) return;
      loss += (1 - smoothing()) * term(probabilities[index(i, *label, j)]);
      for (int64_t c = 0; smoothing() > 0 && c < view_.extent; ++c)
        loss += share() * term(probabilities[index(i, c, j)]);
    });
    arguments.outputs[0][0] = static_cast<T>(loss / divisor_.forward(valid, arguments.sums, arguments.saved));
    if (arguments.outputs.size() > 1)
      reference::write_probabilities(probabilities, view_, classes_.own(),
                                     Spoken<T>(probabilities_, arguments.outputs[1]));
  }

  // dx = (softmax(x) - target) * loss weight / normalizer, 0 where the label is ignored or another device's;
  // target: [class is the label], smoothed
  void backward(const ArgumentsOf<T>& arguments) override {
    if (!arguments.input_gradients[0]) return;
    std::vector<double> gradient = softmax(arguments.inputs[0]);
    int64_t valid = for_each_position(arguments.inputs[1], [&](int64_t i, int64_t j, auto label) {
      if (label) gradient[index(i, *label, j)] -= 1 - smoothing();
      for (int64_t c = 0; c < view_.extent && label; ++c) gradient[index(i, c, j)] -= share();
      for (int64_t c = 0; c < view_.extent && !label; ++c) gradient[index(i, c, j)] = 0;
    });
    double scale =
        static_cast<double>(arguments.output_gradients[0][0]) / divisor_.backward(valid, arguments.saved);
    Spoken<T> dx(scores_, arguments.input_gradients[0]);
    for (int64_t k = 0; k < scores_.size(); ++k) dx[k] = static_cast<T>(gradient[k] * scale);
  }

 private:
  int64_t index(int64_t i, int64_t c, int64_t j) const { return (i * view_.extent + c) * view_.after + j; }

  double smoothing() const { return options_.label_smoothing; }
  double share() const { return smoothing() / static_cast<double>(view_.extent); }
  static double term(double probability) {
    return -std::log(std::max(probability, static_cast<double>(std::numeric_limits<float>::min())));
  }

  // Probabilities in spoken order.
  std::vector<double> softmax(const T* memory) const {
    return reference::probabilities(scores_, view_, memory);
  }

  // work(i, j, class or nothing) for every position; returns the number of classes.
  template <typename Work>
  int64_t for_each_position(const T* memory, Work&& work) const {
    Spoken<const T> labels(labels_, memory);
    int64_t valid = 0;
    for (int64_t k = 0; k < view_.before * view_.after; ++k) {
      std::optional<int64_t> label = classes_.of_label(labels[k]);
      if (label) ++valid;
      work(k / view_.after, k % view_.after, label);
    }
    return valid;
  }

  SoftmaxLossOptions options_;
  Shape scores_, labels_;
  AxisView view_, whole_;
  LabelClasses classes_;
  Shape probabilities_;
  LossDivisor divisor_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_softmax_loss_reference(const Task& task) {
  return std::make_unique<SoftmaxLossReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_softmax_loss_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_softmax_loss_reference<double>(const Task&);

}  // namespace cortado
