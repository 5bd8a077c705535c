#include "cortado/layers/axpy.h"

#include "cortado/kernels/native/broadcast.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/native.h"

namespace cortado {
namespace native {
namespace {

// y = a * x + b with a repeated along space; da = sum dy * x, dx = dy * a, db = dy. One pass each way.
template <typename E>
class AxpyKernel : public Kernel {
 public:
  explicit AxpyKernel(const Task& task)
      : x_(broadcast_layout(task.local_output(0), 0, 2)),
        factor_(task.local_output(0), 0, 2, BroadcastOperand::Order::tensor, task.input_type(0)),
        reads_inputs_(task.input_gradients[0] || task.input_gradients[1]) {}

  std::string name() const override { return "native axpy"; }
  Bytes scratch_bytes() const override {
    return factor_.room() + factor_.room() + broadcast_sums_scratch<1>(x_);
  }
  BackwardReads backward_reads() const override { return {.inputs = reads_inputs_, .outputs = false}; }

  void forward(const Arguments& arguments) override {
    const float* factor = packed_factor(arguments);
    const E *x = elements<E>(arguments.inputs[1]), *b = elements<E>(arguments.inputs[2]);
    E* y = elements<E>(arguments.outputs[0]);
    by_streaming(y, x_, false, [&](auto streaming) {
      visit_broadcast<0>(
          x_, arguments.scratch, {}, [=]<typename V, bool single>(const BroadcastPlace<V, single>& at) {
            store<streaming()>(y + at.i, load<V>(x + at.i) * at.of(factor) + load<V>(b + at.i));
            return std::array<V, 0>{};
          });
    });
  }

  void backward(const Arguments& arguments) override {
    float* sums = arguments.input_gradients[0];
    if (sums && !factor_.packed()) sums = room_of(arguments, 1);
    if (sums) {
      visit<1>(arguments, {sums});
      if (!factor_.packed()) factor_.unpack(sums, arguments.input_gradients[0]);
    } else if (arguments.input_gradients[1] || arguments.input_gradients[2]) {
      visit<0>(arguments, {});
    }
  }

 private:
  // Scratch: the factor in the layout's order, its gradient, sums of threads.
  float* room_of(const Arguments& arguments, int number) const {
    return reinterpret_cast<float*>(arguments.scratch + number * factor_.room().count);
  }
  const float* packed_factor(const Arguments& arguments) const {
    return factor_.pack(arguments.inputs[0], room_of(arguments, 0));
  }

  template <int terms>
  void visit(const Arguments& arguments, const std::array<float*, terms>& sums) const {
    const E *x = elements<E>(arguments.inputs[1]), *dy = elements<E>(arguments.output_gradients[0]);
    E *dx = elements<E>(arguments.input_gradients[1]), *db = elements<E>(arguments.input_gradients[2]);
    const float* factor = dx ? packed_factor(arguments) : nullptr;
    visit_broadcast<terms>(x_, arguments.scratch + 2 * factor_.room().count, sums,
                           [=]<typename V, bool single>(const BroadcastPlace<V, single>& at) {
                             const V gradient = load<V>(dy + at.i);
                             std::array<V, terms> term;
                             if constexpr (terms == 1) term[0] = gradient * load<V>(x + at.i);
                             if (dx) store(dx + at.i, gradient * at.of(factor));
                             if (db) store(db + at.i, gradient);
                             return term;
                           });
  }

  BroadcastLayout x_;
  BroadcastOperand factor_;
  bool reads_inputs_;
};

}  // namespace
}  // namespace native

KernelOffer make_native_axpy(const Task& task) {
  if (!dynamic_cast<const Axpy*>(&task.layer()) || task.layers.size() != 1) return {nullptr, "only for Axpy"};
  return native::offer_by_type(task,
                               [&]<typename E>() { return std::make_unique<native::AxpyKernel<E>>(task); });
}

}  // namespace cortado
