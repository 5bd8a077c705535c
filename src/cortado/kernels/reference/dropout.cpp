#include "cortado/layers/dropout.h"

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"

namespace cortado {
namespace {

template <typename T>
class DropoutReference : public KernelOf<T> {
 public:
  explicit DropoutReference(const Task& task)
      : options_(dynamic_cast<const Dropout&>(task.layer()).options()),
        training_(task.phase == Phase::train),
        shape_(task.outputs[0]),
        place_(tensor_place(task.output_boxes[0])) {}

  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override { mask(a.random, a.inputs[0], a.outputs[0]); }
  void backward(const ArgumentsOf<T>& a) override {
    if (a.input_gradients[0]) mask(a.random, a.output_gradients[0], a.input_gradients[0]);
  }

 private:
  void mask(const RandomStream& random, const T* from, T* to) const {
    for_each_index(place_.box(), [&](const Index& index) {
      int64_t offset = place_(index);
      bool kept = !training_ || options_.keeps(random, spoken_number(shape_, index));
      double scale = !kept ? 0 : training_ ? options_.kept_scale() : 1;
      to[offset] = from[offset] * scale;
    });
  }

  DropoutOptions options_;
  bool training_;
  Shape shape_;
  Place place_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_dropout_reference(const Task& task) {
  return std::make_unique<DropoutReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_dropout_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_dropout_reference<double>(const Task&);

}  // namespace cortado
