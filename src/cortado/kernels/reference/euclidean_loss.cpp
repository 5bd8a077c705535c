#include "cortado/layers/euclidean_loss.h"

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"

namespace cortado {
namespace {

using reference::Spoken;

template <typename T>
class EuclideanLossReference : public KernelOf<T> {
 public:
  explicit EuclideanLossReference(const Task& task)
      : a_(task.local_input(0)), b_(task.local_input(1)), samples_(task.inputs[0][0]) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  void forward(const ArgumentsOf<T>& arguments) override {
    Spoken<const T> a(a_, arguments.inputs[0]), b(b_, arguments.inputs[1]);
    double sum = 0;
    for (int64_t i = 0; i < a_.size(); ++i) {
      double difference = static_cast<double>(a[i]) - b[i];
      sum += difference * difference;
    }
    arguments.outputs[0][0] = static_cast<T>(sum / samples_ / 2);
  }

  // da = (a - b) * loss weight / N = -db
  void backward(const ArgumentsOf<T>& arguments) override {
    Spoken<const T> a(a_, arguments.inputs[0]), b(b_, arguments.inputs[1]);
    for (int input = 0; input < 2; ++input) {
      if (!arguments.input_gradients[input]) continue;
      Spoken<T> gradient(input == 0 ? a_ : b_, arguments.input_gradients[input]);
      double scale = (input == 0 ? 1 : -1) * static_cast<double>(arguments.output_gradients[0][0]) / samples_;
      for (int64_t i = 0; i < a_.size(); ++i) {
        gradient[i] = static_cast<T>((static_cast<double>(a[i]) - b[i]) * scale);
      }
    }
  }

 private:
  Shape a_, b_;
  int64_t samples_;  // of the whole batch
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_euclidean_loss_reference(const Task& task) {
  return std::make_unique<EuclideanLossReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_euclidean_loss_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_euclidean_loss_reference<double>(const Task&);

}  // namespace cortado
