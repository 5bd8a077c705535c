#include "cortado/layers/hinge_loss.h"

#include <algorithm>

#include "cortado/kernels/carry.h"
#include "cortado/kernels/labels.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"

namespace cortado {
namespace {

using reference::Spoken;

template <typename T>
class HingeLossReference : public KernelOf<T> {
 public:
  explicit HingeLossReference(const Task& task)
      : squared_(dynamic_cast<const HingeLoss&>(task.layer()).options().norm == HingeLossOptions::Norm::l2),
        scores_(task.local_input(0)),
        labels_(task.local_input(1)),
        samples_(task.inputs[0][0]) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  void forward(const ArgumentsOf<T>& arguments) override {
    double loss = 0;
    for_each_margin(arguments,
                    [&](int64_t, double, double margin) { loss += squared_ ? margin * margin : margin; });
    arguments.outputs[0][0] = static_cast<T>(loss / samples_);
  }

  // dx = -s [margin > 0] * loss weight / N (L1), -2 s margin * loss weight / N (L2)
  void backward(const ArgumentsOf<T>& arguments) override {
    if (!arguments.input_gradients[0]) return;
    Spoken<T> dx(scores_, arguments.input_gradients[0]);
    double scale = static_cast<double>(arguments.output_gradients[0][0]) / samples_;
    for_each_margin(arguments, [&](int64_t i, double sign, double margin) {
      dx[i] = static_cast<T>(-sign * scale * (squared_ ? 2 * margin : margin > 0 ? 1 : 0));
    });
  }

 private:
  // work(i, s, max(0, 1 - s x)) for every score x.
  template <typename Work>
  void for_each_margin(const ArgumentsOf<T>& arguments, Work&& work) const {
    Spoken<const T> x(scores_, arguments.inputs[0]), labels(labels_, arguments.inputs[1]);
    int64_t classes = scores_.count(1);
    for (int64_t n = 0; n < scores_[0]; ++n) {
      int64_t label = *class_of_label(labels[n], classes);
      for (int64_t c = 0; c < classes; ++c) {
        double sign = c == label ? 1 : -1;
        int64_t i = n * classes + c;
        work(i, sign, carry(std::max(0.0, 1 - sign * x[i]), static_cast<double>(x[i])));
      }
    }
  }

  bool squared_;
  Shape scores_, labels_;
  int64_t samples_;  // of the whole batch
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_hinge_loss_reference(const Task& task) {
  return std::make_unique<HingeLossReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_hinge_loss_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_hinge_loss_reference<double>(const Task&);

}  // namespace cortado
