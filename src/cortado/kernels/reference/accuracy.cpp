#include "cortado/layers/accuracy.h"

#include "cortado/kernels/accuracy_counts.h"
#include "cortado/kernels/carry.h"
#include "cortado/kernels/labels.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"
#include "cortado/layers/axes.h"

namespace cortado {
namespace {

using reference::Spoken;

template <typename T>
class AccuracyReference : public KernelOf<T> {
 public:
  explicit AccuracyReference(const Task& task)
      : options_(dynamic_cast<const Accuracy&>(task.layer()).options()),
        scores_(task.local_input(0)),
        labels_(task.local_input(1)),
        view_(scores_, options_.axis),
        classes_(task, options_.axis, options_.ignore_label),
        counts_(task, options_) {}
  std::string name() const override { return "reference"; }

  int64_t forward_sums() const override { return counts_.sums(); }

  void forward_partial(const ArgumentsOf<T>& arguments) override {
    std::vector<int64_t> seen(view_.extent);
    for_each_label(arguments, [&](int64_t, int64_t label) { ++seen[label]; });
    counts_.add(seen, arguments.sums);
  }

  void forward(const ArgumentsOf<T>& arguments) override {
    Spoken<const T> scores(scores_, arguments.inputs[0]);
    std::vector<int64_t> seen(view_.extent), correct(view_.extent);
    for_each_label(arguments, [&](int64_t k, int64_t label) {
      auto score = [&](int64_t c) {
        return scores[(k / view_.after * view_.extent + c) * view_.after + k % view_.after];
      };
      int64_t as_good = 0;
      for (int64_t c = 0; c < view_.extent; ++c) as_good += c != label && score(c) >= score(label);
      ++seen[label];
      correct[label] += as_good < options_.top_k;
    });
    counts_.write(seen, correct, arguments.sums, arguments.outputs);
    for (int64_t i = 0; i < scores_.size(); ++i)
      arguments.outputs[0][0] = carry(arguments.outputs[0][0], arguments.inputs[0][i]);
  }

  void backward(const ArgumentsOf<T>&) override {}

 private:
  // work(position, class) for each label that counts here.
  template <typename Work>
  void for_each_label(const ArgumentsOf<T>& arguments, Work&& work) const {
    Spoken<const T> labels(labels_, arguments.inputs[1]);
    for (int64_t k = 0; k < view_.before * view_.after; ++k) {
      if (auto label = classes_.of_label(labels[k])) work(k, *label);
    }
  }

  AccuracyOptions options_;
  Shape scores_, labels_;
  AxisView view_;
  LabelClasses classes_;
  AccuracyCounts counts_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_accuracy_reference(const Task& task) {
  return std::make_unique<AccuracyReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_accuracy_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_accuracy_reference<double>(const Task&);

}  // namespace cortado
