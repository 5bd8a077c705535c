#include "cortado/layers/eltwise.h"

#include "cortado/kernels/fused_relu.h"
#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/layouts.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/pointers.h"
#include "cortado/kernels/gpu/values.h"

namespace cortado {
namespace gpu {
namespace {

template <typename E>
using Inputs = Pointers<const E>;

struct Factors {
  double of[most_pointers];
};

template <typename E>
struct WeightedSum {
  Inputs<E> x;
  Factors factors;
  bool relu;
  CORTADO_EVERYWHERE E operator()(int64_t i) const {
    double sum = 0;
    for (int k = 0; k < x.count; ++k) sum += factors.of[k] * value_of(x.of[k][i]);
    if (relu && !(sum > 0)) sum *= 0;  // what is not finite becomes not a number
    return rounded<E>(static_cast<float>(sum));
  }
};
template <typename E>
struct ScaledGradient {
  const E* dy;
  double factor;
  CORTADO_EVERYWHERE E operator()(int64_t i) const {
    return rounded<E>(static_cast<float>(factor * value_of(dy[i])));
  }
};

template <typename E>
struct EltwiseProduct {
  Inputs<E> x;
  E* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    double product = 1;
    for (int k = 0; k < x.count; ++k) product *= value_of(x.of[k][i]);
    y[i] = rounded<E>(static_cast<float>(product));
  }
};
// `y`: the output over the input, unless null: then the product of the other inputs.
template <typename E>
struct EltwiseProductGradient {
  Inputs<E> x;
  const E *y, *dy;
  int input;
  E* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    double slope = 1;
    if (y)
      slope = static_cast<double>(value_of(y[i])) / value_of(x.of[input][i]);
    else
      for (int k = 0; k < x.count; ++k) slope *= k == input ? 1 : value_of(x.of[k][i]);
    dx[i] = rounded<E>(static_cast<float>(value_of(dy[i]) * slope));
  }
};

// Of equal inputs 0 and 1 the second; later inputs only when larger.
template <typename E>
CORTADO_EVERYWHERE inline int largest(const Inputs<E>& x, int64_t i) {
  int best = value_of(x.of[0][i]) > value_of(x.of[1][i]) ? 0 : 1;
  for (int k = 2; k < x.count; ++k)
    if (value_of(x.of[k][i]) > value_of(x.of[best][i])) best = k;
  return best;
}
template <typename E>
struct EltwiseMaximum {
  Inputs<E> x;
  E* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    float value = value_of(x.of[largest<E>(x, i)][i]);
    for (int k = 0; k < x.count; ++k) value += value_of(x.of[k][i]) * 0;
    y[i] = rounded<E>(value);
  }
};
template <typename E>
struct EltwiseMaximumGradient {
  Inputs<E> x;
  const E* dy;
  int input;
  E* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    dx[i] = rounded<E>(value_of(dy[i]) * (largest<E>(x, i) == input ? 1 : 0));
  }
};

// A sum may have a ReLU after it. Where all its factors are 1, the gradient of each input is that of the
// output, masked in place by the ReLU.
class EltwiseKernel : public Kernel {
 public:
  using Operation = EltwiseOptions::Operation;

  EltwiseKernel(const EltwiseOptions& options, const Task& task)
      : options_(options),
        relu_(task.layers.size() > 1),
        size_(task.local_output(0).size()),
        type_(task.input_type(0)) {
    std::ranges::fill(factors_.of, 1.0);
    std::ranges::copy(options.coeff, factors_.of);
    plain_ = options.operation == Operation::sum &&
             std::ranges::all_of(factors_.of, [](double factor) { return factor == 1; });
  }
  std::string name() const override { return relu_ ? "gpu sum-relu" : "gpu eltwise"; }
  BackwardReads backward_reads() const override {
    const bool product = options_.operation == Operation::prod;
    return {.inputs = options_.operation != Operation::sum,
            .outputs = relu_ || (product && !options_.stable_prod_grad)};
  }
  bool in_place() const override { return options_.operation == Operation::sum; }
  bool passes_output_gradient() const override { return plain_; }
  bool overwrites_output_gradients() const override { return relu_; }

  void forward(const Arguments& a) override {
    with_tensor_type(type_, [&]<typename E>() { forward_of<E>(a); });
  }
  void backward(const Arguments& a) override {
    with_tensor_type(type_, [&]<typename E>() {
      if (relu_)
        mask_gradient(a.stream, elements<E>(a.output_gradients[0]), elements<E>(a.outputs[0]), size_);
      if (plain_) return;
      // Input 0 last: its gradient may lie where the output's does.
      for (size_t k = a.input_gradients.size(); k-- > 0;)
        if (a.input_gradients[k]) gradient<E>(a, static_cast<int>(k));
    });
  }

 private:
  template <typename E>
  static Inputs<E> inputs(const Arguments& a) {
    std::vector<const E*> all;
    for (const float* input : a.inputs) all.push_back(elements<E>(input));
    return pointers<const E>(all);
  }
  template <typename E>
  void forward_of(const Arguments& a) const {
    const Inputs<E> x = inputs<E>(a);
    E* const y = elements<E>(a.outputs[0]);
    switch (options_.operation) {
      case Operation::sum:
        if (plain_ && x.count == 2 && relu_)
          return for_each_value(a.stream, size_, y, SumOfTwo<E, true>{x.of[0], x.of[1]});
        if (plain_ && x.count == 2) return for_each_value(a.stream, size_, y, SumOfTwo<E>{x.of[0], x.of[1]});
        return for_each_value(a.stream, size_, y, WeightedSum<E>{x, factors_, relu_});
      case Operation::prod:
        return for_each(a.stream, size_, EltwiseProduct<E>{x, y});
      case Operation::max:
        return for_each(a.stream, size_, EltwiseMaximum<E>{x, y});
    }
  }
  // Of input k.
  template <typename E>
  void gradient(const Arguments& a, int k) const {
    const E* dy = elements<E>(a.output_gradients[0]);
    E* const dx = elements<E>(a.input_gradients[static_cast<size_t>(k)]);
    if (options_.operation == Operation::sum) {
      for_each_value(a.stream, size_, dx, ScaledGradient<E>{dy, factors_.of[k]});
    } else if (options_.operation == Operation::prod) {
      const E* y = options_.stable_prod_grad ? nullptr : elements<E>(a.outputs[0]);
      for_each(a.stream, size_, EltwiseProductGradient<E>{inputs<E>(a), y, dy, k, dx});
    } else {
      for_each(a.stream, size_, EltwiseMaximumGradient<E>{inputs<E>(a), dy, k, dx});
    }
  }

  EltwiseOptions options_;
  bool relu_, plain_;
  int64_t size_;
  ElementType type_;
  Factors factors_;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_eltwise(const Task& task) {
  const auto* layer = dynamic_cast<const Eltwise*>(&task.layer());
  if (!layer) return {nullptr, "not an Eltwise"};
  if (auto refusal = chain_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  if (task.layers.size() > 1 && layer->options().operation != EltwiseOptions::Operation::sum)
    return {nullptr, "only a sum and a ReLU are fused"};
  if (auto refusal = gpu::chain_tensors_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  if (task.inputs.size() > gpu::most_pointers) return {nullptr, "more than 64 inputs"};
  return gpu::offered<gpu::EltwiseKernel>(layer->options(), task);
}

}  // namespace cortado
