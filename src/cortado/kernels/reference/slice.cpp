#include "cortado/layers/slice.h"

#include "cortado/kernels/reference/parts.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"

namespace cortado {
namespace {

using reference::for_each_part_element;
using reference::Spoken;

template <typename T>
class SliceReference : public KernelOf<T> {
 public:
  explicit SliceReference(const Task& task)
      : axis_(dynamic_cast<const Slice&>(task.layer()).options().axis), whole_(task.local_input(0)) {
    for (size_t i = 0; i < task.outputs.size(); ++i) parts_.push_back(task.local_output(i));
  }
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const ArgumentsOf<T>& arguments) override {
    Spoken<const T> x(whole_, arguments.inputs[0]);
    for_each_part_element(parts_, whole_, axis_, [&](size_t part, int64_t to, int64_t from) {
      Spoken<T>(parts_[part], arguments.outputs[part])[to] = x[from];
    });
  }

  // An output without a gradient (null) counts as zero.
  void backward(const ArgumentsOf<T>& arguments) override {
    if (!arguments.input_gradients[0]) return;
    Spoken<T> dx(whole_, arguments.input_gradients[0]);
    for_each_part_element(parts_, whole_, axis_, [&](size_t part, int64_t from, int64_t to) {
      const T* gradient = arguments.output_gradients[part];
      dx[to] = gradient ? Spoken<const T>(parts_[part], gradient)[from] : 0;
    });
  }

 private:
  int axis_;
  Shape whole_;
  std::vector<Shape> parts_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_slice_reference(const Task& task) {
  return std::make_unique<SliceReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_slice_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_slice_reference<double>(const Task&);

}  // namespace cortado
