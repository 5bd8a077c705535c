#include "cortado/layers/concat.h"

#include "cortado/kernels/reference/parts.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"

namespace cortado {
namespace {

using reference::for_each_part_element;
using reference::Spoken;

template <typename T>
class ConcatReference : public KernelOf<T> {
 public:
  explicit ConcatReference(const Task& task)
      : axis_(dynamic_cast<const Concat&>(task.layer()).options().axis), joined_(task.local_output(0)) {
    for (size_t i = 0; i < task.inputs.size(); ++i) parts_.push_back(task.local_input(i));
  }
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const ArgumentsOf<T>& arguments) override {
    Spoken<T> y(joined_, arguments.outputs[0]);
    for_each_part_element(parts_, joined_, axis_, [&](size_t part, int64_t from, int64_t to) {
      y[to] = Spoken<const T>(parts_[part], arguments.inputs[part])[from];
    });
  }

  void backward(const ArgumentsOf<T>& arguments) override {
    Spoken<const T> dy(joined_, arguments.output_gradients[0]);
    for_each_part_element(parts_, joined_, axis_, [&](size_t part, int64_t to, int64_t from) {
      if (!arguments.input_gradients[part]) return;
      Spoken<T>(parts_[part], arguments.input_gradients[part])[to] = dy[from];
    });
  }

 private:
  int axis_;
  Shape joined_;
  std::vector<Shape> parts_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_concat_reference(const Task& task) {
  return std::make_unique<ConcatReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_concat_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_concat_reference<double>(const Task&);

}  // namespace cortado
