#include "cortado/layers/prelu.h"

#include "cortado/kernels/native/broadcast.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/native.h"

namespace cortado {

namespace native {

namespace {

// y = x > 0 ? x : slope * x; dx = x > 0 ? dy : slope * dy, dslope = sum of dy * x where x <= 0. One pass
// forward and one backward.
template <typename E>
class PReluKernel : public Kernel {
 public:
  // A shared slope is one without axes, repeated everywhere.
  PReluKernel(bool channel_shared, const Task& task)
      : x_(broadcast_layout(task.local_input(0), 1, channel_shared ? 0 : 1)) {}

  std::string name() const override { return "native prelu"; }
  Bytes scratch_bytes() const override { return broadcast_sums_scratch<1>(x_); }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  bool in_place() const override { return true; }

  void forward(const Arguments& arguments) override {
    apply<true, 0>(arguments, elements<E>(arguments.inputs[0]), elements<E>(arguments.outputs[0]));
  }

  void backward(const Arguments& arguments) override {
    const E* dy = elements<E>(arguments.output_gradients[0]);
    E* dx = elements<E>(arguments.input_gradients[0]);
    const bool learned = arguments.parameter_gradients[0];
    if (dx) {
      learned ? apply<true, 1>(arguments, dy, dx) : apply<true, 0>(arguments, dy, dx);
    } else if (learned) {
      apply<false, 1>(arguments, dy, dx);
    }
  }

 private:
  // target = x > 0 ? source : slope * source; with one term, sums source * x where x <= 0.
  template <bool writes, int terms>
  void apply(const Arguments& arguments, const E* source, E* target) const {
    const E* x = elements<E>(arguments.inputs[0]);
    const float* slope = arguments.parameters[0];
    std::array<float*, terms> sums;
    if constexpr (terms == 1) sums = {arguments.parameter_gradients[0]};
    by_streaming(target, x_, source == target, [&](auto streaming) {
      visit_broadcast<terms>(x_, arguments.scratch, sums,
                             [=]<typename V, bool single>(const BroadcastPlace<V, single>& at) {
                               const V input = load<V>(x + at.i), value = load<V>(source + at.i);
                               std::array<V, terms> term;
                               if constexpr (terms == 1) term = {input > 0 ? V{} : value * input};
                               if constexpr (writes)
                                 store<streaming()>(target + at.i, input > 0 ? value : value * at.of(slope));
                               return term;
                             });
    });
  }

  BroadcastLayout x_;
};

}  // namespace

}  // namespace native

KernelOffer make_native_prelu(const Task& task) {
  auto* prelu = dynamic_cast<const PRelu*>(&task.layer());
  if (!prelu) return {nullptr, "not a PReLU"};
  if (task.layers.size() > 1) return {nullptr, "a layer after PReLU does not fuse"};
  if (task.inputs[0].rank() < 2) return {nullptr, "a tensor without channel axis"};
  return native::offer_by_type(task, [&]<typename E>() {
    return std::make_unique<native::PReluKernel<E>>(prelu->options().channel_shared, task);
  });
}

}  // namespace cortado
