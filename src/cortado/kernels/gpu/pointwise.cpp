#include "cortado/layers/pointwise.h"

#include "cortado/kernels/gpu/functions.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/values.h"

namespace cortado {
namespace gpu {
namespace {

template <typename Function, typename E>
struct FunctionValue {
  Function function;
  const E* x;
  CORTADO_EVERYWHERE E operator()(int64_t i) const {
    const float value = value_of(x[i]);
    return rounded<E>(function.value(value) + value * 0);
  }
};

template <typename Function, typename E>
struct FunctionGradient {
  Function function;
  const E *x, *dy;
  CORTADO_EVERYWHERE E operator()(int64_t i) const {
    return rounded<E>(value_of(dy[i]) * function.slope(value_of(x[i])));
  }
};

template <typename Function>
class PointwiseKernel : public Kernel {
 public:
  PointwiseKernel(const Function& function, const Task& task)
      : function_(function), size_(task.local_output(0).size()), type_(task.input_type(0)) {}
  std::string name() const override { return "gpu pointwise"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  void forward(const Arguments& a) override {
    with_tensor_type(type_, [&]<typename E>() {
      for_each_value(a.stream, size_, elements<E>(a.outputs[0]),
                     FunctionValue<Function, E>{function_, elements<E>(a.inputs[0])});
    });
  }
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    with_tensor_type(type_, [&]<typename E>() {
      for_each_value(a.stream, size_, elements<E>(a.input_gradients[0]),
                     FunctionGradient<Function, E>{function_, elements<E>(a.inputs[0]),
                                                   elements<E>(a.output_gradients[0])});
    });
  }

 private:
  Function function_;
  int64_t size_;
  ElementType type_;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_pointwise(const Task& task) {
  const auto* layer = dynamic_cast<const Pointwise*>(&task.layer());
  if (!layer) return {nullptr, "not pointwise"};
  if (auto refusal = gpu::one_type_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return std::visit(
      [&](const auto& options) {
        const auto function = gpu::gpu_function(options);
        return gpu::offered<gpu::PointwiseKernel<decltype(function)>>(function, task);
      },
      layer->function());
}

}  // namespace cortado
