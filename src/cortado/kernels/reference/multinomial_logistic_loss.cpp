#include "cortado/layers/multinomial_logistic_loss.h"

#include <algorithm>
#include <cmath>

#include "cortado/kernels/carry.h"
#include "cortado/kernels/labels.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"

namespace cortado {
namespace {

using reference::Spoken;

template <typename T>
class MultinomialLogisticLossReference : public KernelOf<T> {
 public:
  explicit MultinomialLogisticLossReference(const Task& task)
      : probabilities_(task.local_input(0)), labels_(task.local_input(1)), samples_(task.inputs[0][0]) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  void forward(const ArgumentsOf<T>& arguments) override {
    Spoken<const T> p(probabilities_, arguments.inputs[0]);
    double loss = 0;
    for (int64_t i = 0; i < probabilities_.size(); ++i) loss = carry(loss, static_cast<double>(p[i]));
    for_each_label(arguments, [&](int64_t i) { loss -= std::log(bounded(p[i])); });
    arguments.outputs[0][0] = static_cast<T>(loss / samples_);
  }

  void backward(const ArgumentsOf<T>& arguments) override {
    if (!arguments.input_gradients[0]) return;
    Spoken<const T> p(probabilities_, arguments.inputs[0]);
    Spoken<T> dp(probabilities_, arguments.input_gradients[0]);
    const double scale = static_cast<double>(arguments.output_gradients[0][0]) / samples_;
    std::fill_n(arguments.input_gradients[0], probabilities_.size(), T{0});
    for_each_label(arguments, [&](int64_t i) { dp[i] = static_cast<T>(-scale / bounded(p[i])); });
  }

 private:
  static double bounded(double probability) { return std::max(probability, 1e-20); }

  // work(spoken index of the labelled class's probability) for every sample.
  template <typename Work>
  void for_each_label(const ArgumentsOf<T>& arguments, Work&& work) const {
    Spoken<const T> labels(labels_, arguments.inputs[1]);
    const int64_t classes = probabilities_.count(1);
    for (int64_t n = 0; n < probabilities_[0]; ++n) work(n * classes + *class_of_label(labels[n], classes));
  }

  Shape probabilities_, labels_;
  int64_t samples_;  // of the whole batch
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_multinomial_logistic_loss_reference(const Task& task) {
  return std::make_unique<MultinomialLogisticLossReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_multinomial_logistic_loss_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_multinomial_logistic_loss_reference<double>(const Task&);

}  // namespace cortado
