// Reshape and Flatten: the same numbers in spoken order.
#include "cortado/layers/reshape.h"

#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/layers/flatten.h"

namespace cortado {
namespace gpu {
namespace {

template <typename E>
struct ReorderElement {
  SpokenOrder from_order, to_order;
  const E* from;
  E* to;
  CORTADO_EVERYWHERE void operator()(int64_t number) const {
    to[to_order.offset(number)] = from[from_order.offset(number)];
  }
};

class ReshapeKernel : public Kernel {
 public:
  explicit ReshapeKernel(const Task& task)
      : size_(task.local_input(0).size()),
        type_(task.input_type(0)),
        input_(task.local_input(0)),
        output_(task.local_output(0)) {}
  std::string name() const override { return "gpu reshape"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }
  void forward(const Arguments& a) override { reorder(a, input_, output_, a.inputs[0], a.outputs[0]); }
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    reorder(a, output_, input_, a.output_gradients[0], a.input_gradients[0]);
  }

 private:
  void reorder(const Arguments& a, const SpokenOrder& from_order, const SpokenOrder& to_order,
               const float* from, float* to) const {
    with_tensor_type(type_, [&]<typename E>() {
      for_each(a.stream, size_, ReorderElement<E>{from_order, to_order, elements<E>(from), elements<E>(to)});
    });
  }

  int64_t size_;
  ElementType type_;
  SpokenOrder input_, output_;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_reshape(const Task& task) {
  const bool mine =
      dynamic_cast<const Reshape*>(&task.layer()) || dynamic_cast<const Flatten*>(&task.layer());
  if (!mine) return {nullptr, "neither Reshape nor Flatten"};
  if (auto refusal = gpu::one_type_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::ReshapeKernel>(task);
}

}  // namespace cortado
