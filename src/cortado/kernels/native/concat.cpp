#include "cortado/layers/concat.h"

#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/joined_rows.h"
#include "cortado/kernels/native/native.h"
#include "cortado/layers/slice.h"

namespace cortado {
namespace native {
namespace {

template <typename E>
class ConcatKernel : public Kernel {
 public:
  explicit ConcatKernel(JoinedRows rows) : rows_(std::move(rows)) {}

  std::string name() const override { return "native concat"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }
  void forward(const Arguments& arguments) override { rows_.join<E>(arguments.inputs, arguments.outputs[0]); }
  void backward(const Arguments& arguments) override {
    rows_.part<E>(arguments.output_gradients[0], arguments.input_gradients);
  }

 private:
  JoinedRows rows_;
};

template <typename E>
class SliceKernel : public Kernel {
 public:
  explicit SliceKernel(JoinedRows rows) : rows_(std::move(rows)) {}

  std::string name() const override { return "native slice"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }
  void forward(const Arguments& arguments) override { rows_.part<E>(arguments.inputs[0], arguments.outputs); }
  void backward(const Arguments& arguments) override {
    rows_.join<E>(arguments.output_gradients, arguments.input_gradients[0]);
  }

 private:
  JoinedRows rows_;
};

std::vector<Shape> shapes_of(const std::vector<Box>& boxes) {
  std::vector<Shape> shapes;
  for (const Box& box : boxes) shapes.push_back(box.shape());
  return shapes;
}

}  // namespace
}  // namespace native

KernelOffer make_native_concat(const Task& task) {
  const auto* layer = dynamic_cast<const Concat*>(&task.layer());
  if (!layer || task.layers.size() != 1) return {nullptr, "only for Concat"};
  native::JoinedRows rows(native::shapes_of(task.input_boxes), task.local_output(0), layer->options().axis);
  return native::offer_by_type(
      task, [&]<typename E>() { return std::make_unique<native::ConcatKernel<E>>(std::move(rows)); });
}

KernelOffer make_native_slice(const Task& task) {
  const auto* layer = dynamic_cast<const Slice*>(&task.layer());
  if (!layer || task.layers.size() != 1) return {nullptr, "only for Slice"};
  native::JoinedRows rows(native::shapes_of(task.output_boxes), task.local_input(0), layer->options().axis);
  return native::offer_by_type(
      task, [&]<typename E>() { return std::make_unique<native::SliceKernel<E>>(std::move(rows)); });
}

}  // namespace cortado
