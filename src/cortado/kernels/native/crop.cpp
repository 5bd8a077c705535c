#include "cortado/layers/crop.h"

#include <algorithm>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/native.h"

namespace cortado {
namespace native {
namespace {

// Copies the runs of the input that the output keeps. Axes are in memory order, innermost last; the innermost
// ones that are kept whole are one with the first that is not.
template <typename E>
class CropKernel : public Kernel {
 public:
  CropKernel(const Shape& input, const Shape& output, const std::vector<int64_t>& offsets)
      : input_size_(input.size()) {
    std::vector<int> order{0};
    for (int axis = 2; axis < input.rank(); ++axis) order.push_back(axis);
    if (input.rank() > 1) order.push_back(1);
    bool whole = true;
    int64_t step = 1;
    for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
      first_ += offsets[*axis] * step;
      if (whole) {
        run_ *= output[*axis];
      } else {
        outer_.push_back({output[*axis], step});
        runs_ *= output[*axis];
      }
      whole = whole && output[*axis] == input[*axis];
      step *= input[*axis];
    }
  }

  std::string name() const override { return "native crop"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const Arguments& arguments) override {
    const E* x = elements<E>(arguments.inputs[0]);
    E* y = elements<E>(arguments.outputs[0]);
    parallel_for(runs_, [&](int64_t run) { std::copy_n(x + place(run), run_, y + run * run_); });
  }

  void backward(const Arguments& arguments) override {
    const E* dy = elements<E>(arguments.output_gradients[0]);
    E* dx = elements<E>(arguments.input_gradients[0]);
    parallel_ranges(input_size_, [&](int64_t begin, int64_t end) { std::fill(dx + begin, dx + end, E{}); });
    parallel_for(runs_, [&](int64_t run) { std::copy_n(dy + run * run_, run_, dx + place(run)); });
  }

 private:
  struct Axis {
    int64_t extent, step;  // of the output; elements of the input between neighbours
  };

  // Returns where a run of the output begins in the input.
  int64_t place(int64_t run) const {
    int64_t offset = first_;
    for (const Axis& axis : outer_) {
      offset += run % axis.extent * axis.step;
      run /= axis.extent;
    }
    return offset;
  }

  int64_t input_size_;
  int64_t first_ = 0, run_ = 1, runs_ = 1;
  std::vector<Axis> outer_;  // innermost first
};

}  // namespace
}  // namespace native

KernelOffer make_native_crop(const Task& task) {
  const auto* layer = dynamic_cast<const Crop*>(&task.layer());
  if (!layer || task.layers.size() != 1) return {nullptr, "only for Crop"};
  std::vector<int64_t> offsets = layer->offsets(task.inputs[0]);
  for (size_t axis = 0; axis < offsets.size(); ++axis) {
    int i = static_cast<int>(axis);
    offsets[axis] += task.output_boxes[0][i].begin - task.input_boxes[0][i].begin;
  }
  if (task.output_type(0) != task.input_type(0)) return {nullptr, "an output of another type than the input"};
  return native::offer_by_type(task.input_type(0), [&]<typename E>() {  // of input 1 only the shape counts
    return std::make_unique<native::CropKernel<E>>(task.local_input(0), task.local_output(0), offsets);
  });
}

}  // namespace cortado
