#include "cortado/layers/crop.h"

#include <algorithm>

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"

namespace cortado {
namespace {

using reference::Spoken;

template <typename T>
class CropReference : public KernelOf<T> {
 public:
  explicit CropReference(const Task& task) : input_(task.local_input(0)), output_(task.local_output(0)) {
    offsets_ = dynamic_cast<const Crop&>(task.layer()).offsets(task.inputs[0]);
    for (int axis = 0; axis < output_.rank(); ++axis) {
      offsets_[axis] += task.output_boxes[0][axis].begin - task.input_boxes[0][axis].begin;
    }
  }
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const ArgumentsOf<T>& arguments) override {
    Spoken<const T> x(input_, arguments.inputs[0]);
    Spoken<T> y(output_, arguments.outputs[0]);
    for (int64_t i = 0; i < output_.size(); ++i) y[i] = x[source(i)];
  }

  void backward(const ArgumentsOf<T>& arguments) override {
    if (!arguments.input_gradients[0]) return;
    std::fill_n(arguments.input_gradients[0], input_.size(), T{0});
    Spoken<const T> dy(output_, arguments.output_gradients[0]);
    Spoken<T> dx(input_, arguments.input_gradients[0]);
    for (int64_t i = 0; i < output_.size(); ++i) dx[source(i)] = dy[i];
  }

 private:
  // Spoken index in the input of a spoken index in the output.
  int64_t source(int64_t index) const {
    Strides strides = row_major_strides(input_);
    int64_t from = 0;
    for (int axis = output_.rank() - 1; axis >= 0; --axis) {
      from += (index % output_[axis] + offsets_[axis]) * strides[axis];
      index /= output_[axis];
    }
    return from;
  }

  Shape input_, output_;
  std::vector<int64_t> offsets_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_crop_reference(const Task& task) {
  return std::make_unique<CropReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_crop_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_crop_reference<double>(const Task&);

}  // namespace cortado
