#include "cortado/layers/normalize.h"

#include <cmath>
#include <vector>

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"

namespace cortado {
namespace {

template <typename T>
class NormalizeReference : public KernelOf<T> {
 public:
  explicit NormalizeReference(const Task& task)
      : options_(dynamic_cast<const Normalize&>(task.layer()).options()),
        summed_(dynamic_cast<const Normalize&>(task.layer()).summed_axes(task.inputs[0].rank())),
        place_(tensor_place(task.output_boxes[0])) {}  // what a sum covers is computed whole

  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override {
    for_each_group([&](const Box& group) {
      const double norm = norm_of(group, a.inputs[0]);
      for_each_index(group, [&](const Index& index) {
        const int64_t i = place_(index);
        a.outputs[0][i] = scale(a, index) * a.inputs[0][i] / norm;
      });
    });
  }

  // With g = dy * scale and s the norm: dx = (g - x * sum(g * x) / s^2) / s, dscale = sum(dy * x / s).
  void backward(const ArgumentsOf<T>& a) override {
    const T *x = a.inputs[0], *dy = a.output_gradients[0];
    std::vector<double> dscale(options_.channel_shared ? 1 : place_.box()[1].size());
    for_each_group([&](const Box& group) {
      const double norm = norm_of(group, x);
      double product = 0;
      for_each_index(group, [&](const Index& index) {
        const int64_t i = place_(index);
        product += scale(a, index) * dy[i] * x[i];
        dscale[number(index)] += static_cast<double>(dy[i]) * x[i] / norm;
      });
      if (!a.input_gradients[0]) return;
      for_each_index(group, [&](const Index& index) {
        const int64_t i = place_(index);
        a.input_gradients[0][i] = (scale(a, index) * dy[i] - x[i] * product / (norm * norm)) / norm;
      });
    });
    if (a.parameter_gradients[0]) std::copy(dscale.begin(), dscale.end(), a.parameter_gradients[0]);
  }

 private:
  int64_t number(const Index& index) const { return options_.channel_shared ? 0 : index[1]; }
  double scale(const ArgumentsOf<T>& a, const Index& index) const { return a.parameters[0][number(index)]; }

  // The elements that share a norm.
  template <typename Work>
  void for_each_group(Work&& work) const {
    Box firsts = place_.box();  // one element of each group
    for (auto axis = static_cast<int>(summed_.begin); axis < summed_.end; ++axis)
      firsts[axis].end = firsts[axis].begin + 1;
    for_each_index(firsts, [&](const Index& first) {
      Box group = place_.box();
      for (int axis = 0; axis < group.rank(); ++axis)
        if (axis < summed_.begin || axis >= summed_.end) group[axis] = {first[axis], first[axis] + 1};
      work(group);
    });
  }

  double norm_of(const Box& group, const T* x) const {
    double sum = options_.eps;
    for_each_index(group, [&](const Index& index) {
      const double value = x[place_(index)];
      sum += value * value;
    });
    return std::sqrt(sum);
  }

  NormalizeOptions options_;
  Range summed_;  // axes
  Place place_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_normalize_reference(const Task& task) {
  return std::make_unique<NormalizeReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_normalize_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_normalize_reference<double>(const Task&);

}  // namespace cortado
