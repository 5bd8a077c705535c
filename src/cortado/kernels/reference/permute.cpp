#include "cortado/layers/permute.h"

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"

namespace cortado {
namespace {

template <typename T>
class PermuteReference : public KernelOf<T> {
 public:
  explicit PermuteReference(const Task& task)
      : axes_(dynamic_cast<const Permute&>(task.layer()).axes(task.inputs[0])),
        input_(tensor_place(task.input_boxes[0])),
        output_(tensor_place(task.output_boxes[0])) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override {
    for_each_pair([&](int64_t from, int64_t to) { a.outputs[0][to] = a.inputs[0][from]; });
  }

  void backward(const ArgumentsOf<T>& a) override {
    if (!a.input_gradients[0]) return;
    for_each_pair([&](int64_t from, int64_t to) { a.input_gradients[0][from] = a.output_gradients[0][to]; });
  }

 private:
  // work(offset in the input, offset in the output) for every element.
  template <typename Work>
  void for_each_pair(Work&& work) const {
    for_each_index(output_.box(), [&](const Index& index) {
      Index source{};
      for (size_t axis = 0; axis < axes_.size(); ++axis) source[axes_[axis]] = index[axis];
      work(input_(source), output_(index));
    });
  }

  std::vector<int> axes_;
  Place input_, output_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_permute_reference(const Task& task) {
  return std::make_unique<PermuteReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_permute_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_permute_reference<double>(const Task&);

}  // namespace cortado
