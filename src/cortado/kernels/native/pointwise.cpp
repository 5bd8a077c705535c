#include "cortado/layers/pointwise.h"

#include "cortado/kernels/carry.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/elementwise.h"
#include "cortado/kernels/native/functions.h"
#include "cortado/kernels/native/native.h"

namespace cortado {

namespace native {

namespace {

template <typename Function, typename E>
class PointwiseKernel : public Kernel {
 public:
  PointwiseKernel(const Function& function, const Task& task)
      : function_(function), count_(task.local_output(0).size()), type_(task.layer().type()) {}

  std::string name() const override { return "native " + type_; }
  BackwardReads backward_reads() const override {
    return {.inputs = Function::from == DerivativeOf::input,
            .outputs = Function::from == DerivativeOf::output};
  }
  bool in_place() const override { return true; }

  void forward(const Arguments& arguments) override {
    const E* x = elements<E>(arguments.inputs[0]);
    E* y = elements<E>(arguments.outputs[0]);
    map_elements(y, count_, x == y, [=, this]<typename V>(int64_t i) {
      const V value = load<V>(x + i);
      return carry(function_.value(value), value);
    });
  }
  void backward(const Arguments& arguments) override {
    const E* dy = elements<E>(arguments.output_gradients[0]);
    const E* source = elements<E>(arguments.outputs[0]);
    if constexpr (Function::from == DerivativeOf::input) source = elements<E>(arguments.inputs[0]);
    E* dx = elements<E>(arguments.input_gradients[0]);
    if (!dx) return;
    map_elements(dx, count_, dx == dy, [=, this]<typename V>(int64_t i) {
      return function_.gradient(load<V>(dy + i), load<V>(source + i));
    });
  }

 private:
  Function function_;
  int64_t count_;
  std::string type_;
};

// The sign of the input must show in the output, from which the derivative is computed.
bool hides_sign(const PointwiseFunction& function) {
  if (auto* relu = std::get_if<ReluOptions>(&function)) return relu->negative_slope < 0;
  if (auto* elu = std::get_if<EluOptions>(&function)) return elu->alpha < 0;
  return false;
}

}  // namespace

}  // namespace native

KernelOffer make_native_pointwise(const Task& task) {
  auto* pointwise = dynamic_cast<const Pointwise*>(&task.layer());
  if (!pointwise) return {nullptr, "not a pointwise function"};
  if (task.layers.size() > 1) return {nullptr, "a layer after a pointwise function does not fuse"};
  if (native::hides_sign(pointwise->function())) return {nullptr, "a negative slope or alpha"};
  return std::visit(
      [&](const auto& options) -> KernelOffer {
        auto function = native::native_function(options);
        return native::offer_by_type(task, [&]<typename E>() {
          return std::make_unique<native::PointwiseKernel<decltype(function), E>>(function, task);
        });
      },
      pointwise->function());
}

}  // namespace cortado
