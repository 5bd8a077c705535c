#include "cortado/layers/lrn.h"

#include <cmath>
#include <vector>

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"

namespace cortado {
namespace {

template <typename T>
class LrnReference : public KernelOf<T> {
 public:
  explicit LrnReference(const Task& task)
      : options_(dynamic_cast<const Lrn&>(task.layer()).options()),
        shape_(task.inputs[0]),
        input_(tensor_place(task.input_boxes[0])),
        output_(tensor_place(task.output_boxes[0])) {
    bool across = options_.region == LrnOptions::Region::across_channels;
    first_axis_ = across ? 1 : 2;
    end_axis_ = across ? 2 : shape_.rank();
    base_ = across ? options_.k : 1;
    factor_ = options_.alpha / std::pow(options_.local_size, end_axis_ - first_axis_);
  }

  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override {
    for_each_index(output_.box(), [&](const Index& index) {
      a.outputs[0][output_(index)] =
          a.inputs[0][input_(index)] * std::pow(normalizer(a.inputs[0], index), -options_.beta);
    });
  }

  // What output i gives to its inputs: dy * s^-beta to its own, and to each of its region
  // -2 * factor * beta * x * (dy * x[i] * s^(-beta-1)).
  void backward(const ArgumentsOf<T>& a) override {
    if (!a.input_gradients[0]) return;
    const T *x = a.inputs[0], *dy = a.output_gradients[0];
    std::vector<double> gradient(input_.size());
    for_each_index(output_.box(), [&](const Index& index) {
      double s = normalizer(x, index), own = dy[output_(index)];
      double term = own * x[input_(index)] * std::pow(s, -options_.beta - 1);
      gradient[input_(index)] += own * std::pow(s, -options_.beta);
      for_each_index(region(index), [&](const Index& neighbour) {
        int64_t i = input_(neighbour);
        gradient[i] -= 2 * factor_ * options_.beta * x[i] * term;
      });
    });
    std::copy(gradient.begin(), gradient.end(), a.input_gradients[0]);
  }

 private:
  Box region(const Index& index) const {
    Box box = Box::whole(shape_);
    for (int axis = 0; axis < shape_.rank(); ++axis) {
      bool normalized = axis >= first_axis_ && axis < end_axis_;
      int64_t reach = normalized ? options_.local_size / 2 : 0;
      box[axis] = {index[axis] - reach, index[axis] + reach + 1};
    }
    return box.clip(shape_);
  }

  double normalizer(const T* x, const Index& index) const {
    double squares = 0;
    for_each_index(region(index), [&](const Index& neighbour) {
      double value = x[input_(neighbour)];
      squares += value * value;
    });
    return base_ + factor_ * squares;
  }

  LrnOptions options_;
  Shape shape_;
  Place input_, output_;
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
