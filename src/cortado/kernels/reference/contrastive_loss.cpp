#include "cortado/layers/contrastive_loss.h"

#include <algorithm>
#include <cmath>

#include "cortado/kernels/carry.h"
#include "cortado/kernels/reference/reference.h"

namespace cortado {
namespace {

template <typename T>
class ContrastiveLossReference : public KernelOf<T> {
 public:
  explicit ContrastiveLossReference(const Task& task)
      : options_(dynamic_cast<const ContrastiveLoss&>(task.layer()).options()),
        pairs_(task.local_input(0)[0]),
        channels_(task.local_input(0)[1]),
        samples_(task.inputs[0][0]) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  void forward(const ArgumentsOf<T>& arguments) override {
    double loss = 0;
    for (int64_t n = 0; n < pairs_; ++n) {
      double squared = squared_distance(arguments, n);
      if (similar(arguments, n)) {
        loss += squared;
      } else if (options_.legacy_version) {
        loss += carry(std::max(options_.margin - squared, 0.0), squared);
      } else {
        double gap = carry(std::max(options_.margin - std::sqrt(squared), 0.0), squared);
        loss += gap * gap;
      }
    }
    arguments.outputs[0][0] = static_cast<T>(loss / samples_ / 2);
  }

  // da = slope (a - b) * loss weight / N = -db
  void backward(const ArgumentsOf<T>& arguments) override {
    const T *a = arguments.inputs[0], *b = arguments.inputs[1];
    double scale = static_cast<double>(arguments.output_gradients[0][0]) / samples_;
    for (int64_t n = 0; n < pairs_; ++n) {
      double factor = scale * slope(similar(arguments, n), squared_distance(arguments, n));
      for (int64_t i = n * channels_; i < (n + 1) * channels_; ++i) {
        double gradient = factor * (static_cast<double>(a[i]) - b[i]);
        if (arguments.input_gradients[0]) arguments.input_gradients[0][i] = static_cast<T>(gradient);
        if (arguments.input_gradients[1]) arguments.input_gradients[1][i] = static_cast<T>(-gradient);
      }
    }
  }

 private:
  bool similar(const ArgumentsOf<T>& arguments, int64_t n) const {
    return std::trunc(arguments.inputs[2][n]) != 0;
  }

  double squared_distance(const ArgumentsOf<T>& arguments, int64_t n) const {
    double sum = 0;
    for (int64_t i = n * channels_; i < (n + 1) * channels_; ++i) {
      double difference = static_cast<double>(arguments.inputs[0][i]) - arguments.inputs[1][i];
      sum += difference * difference;
    }
    return sum;
  }

  // Derivative by d^2 / 2. Caffe's 1e-4 keeps the quotient finite at d = 0.
  double slope(bool similar, double squared) const {
    if (similar) return 1;
    if (options_.legacy_version) return options_.margin > squared ? -1 : 0;
    double distance = std::sqrt(squared);
    return options_.margin > distance ? -(options_.margin - distance) / (distance + 1e-4) : 0;
  }

  ContrastiveLossOptions options_;
  int64_t pairs_, channels_;
  int64_t samples_;  // of the whole batch
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_contrastive_loss_reference(const Task& task) {
  return std::make_unique<ContrastiveLossReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_contrastive_loss_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_contrastive_loss_reference<double>(const Task&);

}  // namespace cortado
