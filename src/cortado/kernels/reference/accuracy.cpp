#include "cortado/layers/accuracy.h"

#include <numeric>

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
        view_(scores_, options_.axis) {}
  std::string name() const override { return "reference"; }

  void forward(const ArgumentsOf<T>& arguments) override {
    Spoken<const T> scores(scores_, arguments.inputs[0]), labels(labels_, arguments.inputs[1]);
    std::vector<double> seen(view_.extent), correct(view_.extent);
    for (int64_t k = 0; k < view_.before * view_.behind; ++k) {
      std::optional<int64_t> label = class_of_label(labels[k], view_.extent, options_.ignore_label);
      if (!label) continue;
      auto score = [&](int64_t c) {
        return scores[(k / view_.behind * view_.extent + c) * view_.behind + k % view_.behind];
      };
      int64_t as_good = 0;
      for (int64_t c = 0; c < view_.extent; ++c) as_good += c != *label && score(c) >= score(*label);
      ++seen[*label];
      correct[*label] += as_good < options_.top_k;
    }
    auto share = [](double part, double whole) { return static_cast<T>(whole == 0 ? 0 : part / whole); };
    arguments.outputs[0][0] = share(std::accumulate(correct.begin(), correct.end(), 0.0),
                                    std::accumulate(seen.begin(), seen.end(), 0.0));
    if (arguments.outputs.size() < 2) return;
    for (int64_t c = 0; c < view_.extent; ++c) arguments.outputs[1][c] = share(correct[c], seen[c]);
  }

  void backward(const ArgumentsOf<T>&) override {}

 private:
  AccuracyOptions options_;
  Shape scores_, labels_;
  AxisView view_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_accuracy_reference(const Task& task) {
  return std::make_unique<AccuracyReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_accuracy_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_accuracy_reference<double>(const Task&);

}  // namespace cortado
