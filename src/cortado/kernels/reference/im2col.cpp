#include "cortado/layers/im2col.h"

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"

namespace cortado {
namespace {

template <typename T>
class Im2colReference : public KernelOf<T> {
 public:
  explicit Im2colReference(const Task& task)
      : window_(dynamic_cast<const Im2col&>(task.layer()).window(task.inputs[0].rank())),
        shape_(task.inputs[0]),
        input_(tensor_place(task.input_boxes[0])),
        output_(tensor_place(task.output_boxes[0])) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override {
    for_each_index(output_.box(), [&](const Index& index) {
      Index source;
      a.outputs[0][output_(index)] = lies_inside(index, source) ? a.inputs[0][input_(source)] : T{0};
    });
  }

  void backward(const ArgumentsOf<T>& a) override {
    if (!a.input_gradients[0]) return;
    std::vector<double> sums(input_.size());
    for_each_index(output_.box(), [&](const Index& index) {
      Index source;
      if (lies_inside(index, source)) sums[input_(source)] += a.output_gradients[0][output_(index)];
    });
    std::copy(sums.begin(), sums.end(), a.input_gradients[0]);
  }

 private:
  // Whether an element of the output is of the image and not of its padding; if so, where.
  bool lies_inside(const Index& index, Index& source) const {
    source = index;
    int64_t element = index[1];
    for (size_t i = window_.size(); i-- > 0;) {
      const int64_t k = element % window_[i].kernel;
      element /= window_[i].kernel;
      source[i + 2] = window_[i].first(index[i + 2]) + k * window_[i].dilation;
      if (source[i + 2] < 0 || source[i + 2] >= shape_[static_cast<int>(i) + 2]) return false;
    }
    source[1] = element;
    return true;
  }

  Window window_;
  Shape shape_;  // of the whole input
  Place input_, output_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_im2col_reference(const Task& task) {
  return std::make_unique<Im2colReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_im2col_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_im2col_reference<double>(const Task&);

}  // namespace cortado
