#include "cortado/layers/accuracy.h"

#include <vector>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/native/native.h"
#include "cortado/kernels/native/rows.h"
#include "cortado/layers/axes.h"

namespace cortado {
namespace native {
namespace {

// Accuracy of contiguous rows of scores. Scratch, per row: its class and whether it is right.
class AccuracyKernel : public Kernel {
 public:
  AccuracyKernel(const AccuracyOptions& options, const Task& task)
      : options_(options),
        labels_(task.local_input(1)),
        classes_(AxisView(task.local_input(0), options.axis).extent),
        rows_(task.local_input(0).size() / classes_) {}

  std::string name() const override { return "native accuracy"; }
  Bytes scratch_bytes() const override { return {2 * rows_ * int64_t{sizeof(int32_t)}}; }

  void forward(const Arguments& arguments) override {
    auto* classes = reinterpret_cast<int32_t*>(arguments.scratch);
    int32_t* right = classes + rows_;
    int64_t valid =
        read_classes(labels_, arguments.inputs[1], rows_, classes_, options_.ignore_label, classes);
    parallel_for(rows_, [&](int64_t row) {
      right[row] = classes[row] >= 0 && is_right(arguments.inputs[0] + row * classes_, classes[row]);
    });
    int64_t all_right = 0;
    for (int64_t row = 0; row < rows_; ++row) all_right += right[row];
    arguments.outputs[0][0] = share(all_right, valid);
    if (arguments.outputs.size() > 1) write_per_class(classes, right, arguments.outputs[1]);
  }

  void backward(const Arguments&) override {}

 private:
  static float share(int64_t part, int64_t whole) {
    return whole == 0 ? 0 : static_cast<float>(static_cast<double>(part) / static_cast<double>(whole));
  }

  // Fewer than top_k other classes score at least as high.
  bool is_right(const float* scores, int32_t label) const {
    float own = scores[label];
    int32_t as_good = -(own >= own);  // not the class itself
#pragma omp simd reduction(+ : as_good)
    for (int64_t c = 0; c < classes_; ++c) as_good += scores[c] >= own;
    return as_good < options_.top_k;
  }

  void write_per_class(const int32_t* classes, const int32_t* right, float* output) const {
    std::vector<int64_t> seen(classes_), correct(classes_);
    for (int64_t row = 0; row < rows_; ++row) {
      if (classes[row] < 0) continue;
      ++seen[classes[row]];
      correct[classes[row]] += right[row];
    }
    for (int64_t c = 0; c < classes_; ++c) output[c] = share(correct[c], seen[c]);
  }

  AccuracyOptions options_;
  Shape labels_;
  int64_t classes_, rows_;
};

}  // namespace
}  // namespace native

KernelOffer make_native_accuracy(const Task& task) {
  const auto* layer = dynamic_cast<const Accuracy*>(&task.layer());
  if (!layer || task.layers.size() != 1) return {nullptr, "only for Accuracy"};
  if (task.local_input(0).size() == 0) return {nullptr, "an empty tensor"};
  if (!native::contiguous_axis(task.local_input(0), layer->options().axis)) {
    return {nullptr, "the class axis is not contiguous in memory"};
  }
  return {std::make_unique<native::AccuracyKernel>(layer->options(), task), ""};
}

}  // namespace cortado
