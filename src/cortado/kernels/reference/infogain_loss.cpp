#include "cortado/layers/infogain_loss.h"

#include <cmath>

#include "cortado/kernels/carry.h"
#include "cortado/kernels/labels.h"
#include "cortado/kernels/loss_divisor.h"
#include "cortado/kernels/reference/probabilities.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"

namespace cortado {
namespace {

using reference::Spoken;

template <typename T>
class InfogainLossReference : public KernelOf<T> {
 public:
  explicit InfogainLossReference(const Task& task)
      : options_(layer_of(task).options()),
        given_(layer_of(task).matrix().begin(), layer_of(task).matrix().end()),
        scores_(task.local_input(0)),
        labels_(task.local_input(1)),
        matrix_(task.inputs.size() > 2 ? task.inputs[2] : Shape{}),
        from_input_(task.inputs.size() > 2),
        view_(scores_, options_.axis),
        classes_(task, options_.axis, options_.ignore_label),
        probabilities_(task.outputs.size() > 1 ? task.local_output(1) : Shape{}),
        divisor_(divisor(task)) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  int64_t forward_sums() const override { return divisor_.sums(); }
  Bytes saved_bytes() const override { return {divisor_.saved_bytes()}; }

  void forward_partial(const ArgumentsOf<T>& arguments) override {
    arguments.sums[0] = static_cast<double>(for_each_position(arguments.inputs[1], [](auto...) {}));
  }

  void forward(const ArgumentsOf<T>& arguments) override {
    const std::vector<double> p = reference::probabilities(scores_, view_, arguments.inputs[0]);
    const std::vector<double> h = matrix(arguments);
    double loss = 0;
    for (double value : h) loss = carry(loss, value);
    const int64_t valid = for_each_position(arguments.inputs[1], [&](int64_t line, auto label) {
      loss = carry(loss, p[line]);
      for (int64_t k = 0; k < view_.extent && label; ++k)
        loss -= h[*label * view_.extent + k] * std::log(std::max(p[line + k * view_.after], 1e-20));
    });
    arguments.outputs[0][0] = static_cast<T>(loss / divisor_.forward(valid, arguments.sums, arguments.saved));
    if (arguments.outputs.size() > 1)
      reference::write_probabilities(p, view_, classes_.own(),
                                     Spoken<T>(probabilities_, arguments.outputs[1]));
  }

  // dx[k] = (softmax(x)[k] * sum of row H[label] - H[label, k]) * loss weight / normalizer, 0 where the label
  // is ignored or another device's
  void backward(const ArgumentsOf<T>& arguments) override {
    if (!arguments.input_gradients[0]) return;
    std::vector<double> gradient = reference::probabilities(scores_, view_, arguments.inputs[0]);
    const std::vector<double> h = matrix(arguments);
    const int64_t valid = for_each_position(arguments.inputs[1], [&](int64_t line, auto label) {
      const double* row = label ? h.data() + *label * view_.extent : nullptr;
      double sum = 0;
      for (int64_t k = 0; k < view_.extent && label; ++k) sum += row[k];
      for (int64_t k = 0; k < view_.extent; ++k) {
        double& element = gradient[line + k * view_.after];
        element = label ? element * sum - row[k] : 0;
      }
    });
    const double scale =
        static_cast<double>(arguments.output_gradients[0][0]) / divisor_.backward(valid, arguments.saved);
    Spoken<T> dx(scores_, arguments.input_gradients[0]);
    for (int64_t k = 0; k < scores_.size(); ++k) dx[k] = static_cast<T>(gradient[k] * scale);
  }

 private:
  static const InfogainLoss& layer_of(const Task& task) {
    return dynamic_cast<const InfogainLoss&>(task.layer());
  }

  LossDivisor divisor(const Task& task) const {
    const AxisView whole(task.inputs[0], options_.axis);
    return {task, options_.normalization, options_.ignore_label.has_value(), whole.before, whole.after};
  }

  std::vector<double> matrix(const ArgumentsOf<T>& arguments) const {
    if (!from_input_) return given_;
    Spoken<const T> spoken(matrix_, arguments.inputs[2]);
    std::vector<double> values(matrix_.size());
    for (int64_t i = 0; i < matrix_.size(); ++i) values[i] = spoken[i];
    return values;
  }

  // work(index of class 0, class or nothing) for every position; returns the number of classes.
  template <typename Work>
  int64_t for_each_position(const T* memory, Work&& work) const {
    Spoken<const T> labels(labels_, memory);
    int64_t valid = 0;
    for (int64_t k = 0; k < view_.before * view_.after; ++k) {
      const std::optional<int64_t> label = classes_.of_label(labels[k]);
      if (label) ++valid;
      work(k / view_.after * view_.extent * view_.after + k % view_.after, label);
    }
    return valid;
  }

  InfogainLossOptions options_;
  std::vector<double> given_;  // the matrix, unless it is an input
  Shape scores_, labels_, matrix_;
  bool from_input_;
  AxisView view_;
  LabelClasses classes_;
  Shape probabilities_;
  LossDivisor divisor_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_infogain_loss_reference(const Task& task) {
  return std::make_unique<InfogainLossReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_infogain_loss_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_infogain_loss_reference<double>(const Task&);

}  // namespace cortado
