#include "cortado/layers/mvn.h"

#include <cmath>

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"

namespace cortado {
namespace {

template <typename T>
class MvnReference : public KernelOf<T> {
 public:
  explicit MvnReference(const Task& task)
      : options_(dynamic_cast<const Mvn&>(task.layer()).options()),
        place_(tensor_place(task.output_boxes[0])) {}  // samples and channels are computed whole

  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override {
    for_each_group([&](const Box& group) {
      double mean = mean_of(group, [&](int64_t i) { return a.inputs[0][i]; });
      double divisor = options_.normalize_variance ? deviation(group, a.inputs[0], mean) + options_.eps : 1;
      for_each_index(group, [&](const Index& index) {
        int64_t i = place_(index);
        a.outputs[0][i] = (a.inputs[0][i] - mean) / divisor;
      });
    });
  }

  // With g = dy and s the deviation, by Caffe's formula: dx = (g - mean g - y * mean(g * y)) / (s + eps). The
  // derivative has s in place of one of the divisors within y * mean(g * y), which differs where eps is
  // large.
  void backward(const ArgumentsOf<T>& a) override {
    if (!a.input_gradients[0]) return;
    const T *x = a.inputs[0], *dy = a.output_gradients[0];
    for_each_group([&](const Box& group) {
      double mean = mean_of(group, [&](int64_t i) { return x[i]; });
      double gradient_mean = mean_of(group, [&](int64_t i) { return dy[i]; });
      double divisor = options_.normalize_variance ? deviation(group, x, mean) + options_.eps : 1;
      double correlation = mean_of(group, [&](int64_t i) { return dy[i] * (x[i] - mean); });
      double pull = options_.normalize_variance ? correlation / (divisor * divisor) : 0;
      for_each_index(group, [&](const Index& index) {
        int64_t i = place_(index);
        a.input_gradients[0][i] = (dy[i] - gradient_mean - (x[i] - mean) * pull) / divisor;
      });
    });
  }

 private:
  // The elements that share a mean: a sample's channel, or a sample.
  template <typename Work>
  void for_each_group(Work&& work) const {
    Box firsts = place_.box();  // one element of each group
    for (int axis = options_.across_channels ? 1 : 2; axis < firsts.rank(); ++axis)
      firsts[axis].end = firsts[axis].begin + 1;
    for_each_index(firsts, [&](const Index& first) {
      Box group = place_.box();
      group[0] = {first[0], first[0] + 1};
      if (!options_.across_channels) group[1] = {first[1], first[1] + 1};
      work(group);
    });
  }

  template <typename Value>
  double mean_of(const Box& group, Value&& value) const {
    double sum = 0;
    for_each_index(group, [&](const Index& index) { sum += value(place_(index)); });
    return sum / group.shape().size();
  }

  double deviation(const Box& group, const T* x, double mean) const {
    return std::sqrt(mean_of(group, [&](int64_t i) { return (x[i] - mean) * (x[i] - mean); }));
  }

  MvnOptions options_;
  Place place_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_mvn_reference(const Task& task) {
  return std::make_unique<MvnReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_mvn_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_mvn_reference<double>(const Task&);

}  // namespace cortado
