#include "cortado/layers/accuracy.h"

#include <vector>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/accuracy_counts.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/native.h"
#include "cortado/kernels/native/rows.h"
#include "cortado/layers/axes.h"

namespace cortado {
namespace native {
namespace {

// Accuracy of contiguous rows of scores. Scratch, per row: its class and whether it is right.
template <typename E>
class AccuracyKernel : public Kernel {
 public:
  AccuracyKernel(const AccuracyOptions& options, const Task& task)
      : options_(options),
        labels_(task.local_input(1)),
        classes_(AxisView(task.local_input(0), options.axis).extent),
        rows_(task.local_input(0).size() / classes_),
        counted_(task, options.axis, options.ignore_label),
        counts_(task, options) {}

  std::string name() const override { return "native accuracy"; }
  Bytes scratch_bytes() const override { return {2 * rows_ * int64_t{sizeof(int32_t)}}; }

  int64_t forward_sums() const override { return counts_.sums(); }

  void forward_partial(const Arguments& arguments) override {
    const int32_t* classes = read_labels(arguments);
    counts_.add(counted(classes, [](int64_t) { return 1; }), arguments.sums);
  }

  void forward(const Arguments& arguments) override {
    const E* x = elements<E>(arguments.inputs[0]);
    int32_t* classes = read_labels(arguments);
    int32_t* right = classes + rows_;
    parallel_for(rows_, [&](int64_t row) {
      right[row] = classes[row] >= 0 && is_right(x + row * classes_, classes[row]);
    });
    counts_.write(counted(classes, [](int64_t) { return 1; }),
                  counted(classes, [right](int64_t row) { return right[row]; }), arguments.sums,
                  arguments.outputs);
    const int64_t scores = rows_ * classes_;
    arguments.outputs[0][0] += row_sum(scores, [&]<typename V>(int64_t i) { return 0 * load<V>(x + i); });
  }

  void backward(const Arguments&) override {}

 private:
  int32_t* read_labels(const Arguments& arguments) const {
    auto* classes = reinterpret_cast<int32_t*>(arguments.scratch);
    read_classes(labels_, arguments.inputs[1], rows_, counted_, classes);
    return classes;
  }

  // Per class, the sum of weight(row) over the rows of that class.
  template <typename Weight>
  std::vector<int64_t> counted(const int32_t* classes, Weight&& weight) const {
    std::vector<int64_t> sums(classes_);
    for (int64_t row = 0; row < rows_; ++row) {
      if (classes[row] >= 0) sums[classes[row]] += weight(row);
    }
    return sums;
  }

  // Fewer than top_k other classes score at least as high.
  bool is_right(const E* scores, int32_t label) const {
    float own = load<float>(scores + label);
    int32_t as_good = -(own >= own);  // not the class itself
#pragma omp simd reduction(+ : as_good)
    for (int64_t c = 0; c < classes_; ++c) as_good += load<float>(scores + c) >= own;
    return as_good < options_.top_k;
  }

  AccuracyOptions options_;
  Shape labels_;
  int64_t classes_, rows_;
  LabelClasses counted_;
  AccuracyCounts counts_;
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
  if (!native::others_f32(task)) return {nullptr, "labels or shares that are not f32"};
  return native::offer_by_type(task.input_type(0), [&]<typename E>() {
    return std::make_unique<native::AccuracyKernel<E>>(layer->options(), task);
  });
}

}  // namespace cortado
