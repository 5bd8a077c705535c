#include "cortado/layers/softmax.h"

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/carry.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/native.h"
#include "cortado/kernels/native/rows.h"
#include "cortado/kernels/native/vector_math.h"

namespace cortado {
namespace native {
namespace {

// Softmax of contiguous rows. Probabilities and their gradients are float.
template <typename E>
class SoftmaxKernel : public Kernel {
 public:
  SoftmaxKernel(int64_t rows, int64_t classes) : rows_(rows), classes_(classes) {}

  std::string name() const override { return "native softmax"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = true}; }
  bool in_place() const override { return std::is_same_v<E, float>; }

  void forward(const Arguments& arguments) override {
    parallel_for(rows_, [&](int64_t row) {
      const E* x = elements<E>(arguments.inputs[0]) + row * classes_;
      float* y = arguments.outputs[0] + row * classes_;
      float largest = row_maximum(x, classes_);
      float sum = row_sum(classes_, [&]<typename V>(int64_t i) {
        const V score = load<V>(x + i), power = carry(exp(score - largest), score);
        store(y + i, power);
        return power;
      });
      float factor = 1 / sum;
      by_lanes(0, classes_, [&]<typename V>(int64_t i) { store(y + i, load<V>(y + i) * factor); });
    });
  }

  void backward(const Arguments& arguments) override {
    parallel_for(rows_, [&](int64_t row) {
      const float* y = arguments.outputs[0] + row * classes_;
      const float* dy = arguments.output_gradients[0] + row * classes_;
      E* dx = elements<E>(arguments.input_gradients[0]) + row * classes_;
      float sum = row_sum(classes_, [&]<typename V>(int64_t i) { return load<V>(y + i) * load<V>(dy + i); });
      by_lanes(0, classes_,
               [&]<typename V>(int64_t i) { store(dx + i, load<V>(y + i) * (load<V>(dy + i) - sum)); });
    });
  }

 private:
  int64_t rows_, classes_;
};

}  // namespace
}  // namespace native

KernelOffer make_native_softmax(const Task& task) {
  const auto* softmax = dynamic_cast<const Softmax*>(&task.layer());
  if (!softmax || task.layers.size() != 1) return {nullptr, "only for Softmax"};
  Shape shape = task.local_input(0);
  if (shape.size() == 0) return {nullptr, "an empty tensor"};
  if (task.input_boxes[0] != task.output_boxes[0]) return {nullptr, "the softmax axis is cut"};
  if (!native::contiguous_axis(shape, softmax->options().axis)) {
    return {nullptr, "the softmax axis is not contiguous in memory"};
  }
  int64_t classes = shape[shape.canonical_axis(softmax->options().axis)];
  if (!native::others_f32(task)) return {nullptr, "probabilities that are not f32"};
  return native::offer_by_type(task.input_type(0), [&]<typename E>() {
    return std::make_unique<native::SoftmaxKernel<E>>(shape.size() / classes, classes);
  });
}

}  // namespace cortado
