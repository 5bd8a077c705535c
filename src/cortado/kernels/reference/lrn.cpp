#include "cortado/layers/lrn.h"

#include <cmath>
#include <vector>

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"
#include "cortado/kernels/reference/whole.h"

namespace cortado {
namespace {

template <typename T>
class LrnReference : public KernelOf<T> {
 public:
  explicit LrnReference(const Task& task)
      : options_(dynamic_cast<const Lrn&>(task.layer()).options()),
        shape_(task.inputs[0]),
        place_(tensor_place(Box::whole(shape_))) {
    require_whole_tensors(task);
    bool across = options_.region == LrnOptions::Region::across_channels;
    first_axis_ = across ? 1 : 2;
    end_axis_ = across ? 2 : shape_.rank();
    base_ = across ? options_.k : 1;
    factor_ = options_.alpha / std::pow(options_.local_size, end_axis_ - first_axis_);
  }

  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override {
    std::vector<double> sums = normalizers(a.inputs[0]);
    for (size_t i = 0; i < sums.size(); ++i)
      a.outputs[0][i] = a.inputs[0][i] * std::pow(sums[i], -options_.beta);
  }

  // dx = dy * s^-beta - 2 * factor * beta * x * sum over the region of dy * x * s^(-beta-1)
  void backward(const ArgumentsOf<T>& a) override {
    if (!a.input_gradients[0]) return;
    const T *x = a.inputs[0], *dy = a.output_gradients[0];
    std::vector<double> sums = normalizers(x), terms(sums.size());
    for (size_t i = 0; i < sums.size(); ++i) terms[i] = dy[i] * x[i] * std::pow(sums[i], -options_.beta - 1);
    for_each_index(place_.box(), [&](const Index& index) {
      int64_t i = place_(index);
      double sum = 0;
      for_each_index(region(index), [&](const Index& neighbour) { sum += terms[place_(neighbour)]; });
      a.input_gradients[0][i] =
          dy[i] * std::pow(sums[i], -options_.beta) - 2 * factor_ * options_.beta * x[i] * sum;
    });
  }

 private:
  Box region(const Index& index) const {
    Box box = place_.box();
    for (int axis = 0; axis < shape_.rank(); ++axis) {
      bool normalized = axis >= first_axis_ && axis < end_axis_;
      int64_t reach = normalized ? options_.local_size / 2 : 0;
      box[axis] = {index[axis] - reach, index[axis] + reach + 1};
    }
    return box.clip(shape_);
  }

  std::vector<double> normalizers(const T* x) const {
    std::vector<double> sums(place_.size());
    for_each_index(place_.box(), [&](const Index& index) {
      double squares = 0;
      for_each_index(region(index), [&](const Index& neighbour) {
        double value = x[place_(neighbour)];
        squares += value * value;
      });
      sums[place_(index)] = base_ + factor_ * squares;
    });
    return sums;
  }

  LrnOptions options_;
  Shape shape_;
  Place place_;
  int first_axis_ = 1, end_axis_ = 2;  // of the region
  double base_ = 1, factor_ = 1;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_lrn_reference(const Task& task) {
  return std::make_unique<LrnReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_lrn_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_lrn_reference<double>(const Task&);

}  // namespace cortado
