#include "cortado/layers/eltwise.h"

#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/pointers.h"

namespace cortado {
namespace gpu {
namespace {

using Inputs = Pointers<const float>;

struct Coefficients {
  double of[most_pointers];
};

struct WeightedSum {
  Inputs x;
  Coefficients factors;
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    double sum = 0;
    for (int k = 0; k < x.count; ++k) sum += factors.of[k] * x.of[k][i];
    y[i] = static_cast<float>(sum);
  }
};
struct ScaledGradient {
  const float* dy;
  double factor;
  float* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const { dx[i] = static_cast<float>(factor * dy[i]); }
};

struct EltwiseProduct {
  Inputs x;
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    double product = 1;
    for (int k = 0; k < x.count; ++k) product *= x.of[k][i];
    y[i] = static_cast<float>(product);
  }
};
// `y`: the output over the input, unless null: then the product of the other inputs.
struct EltwiseProductGradient {
  Inputs x;
  const float *y, *dy;
  int input;
  float* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    double slope = 1;
    if (y)
      slope = static_cast<double>(y[i]) / x.of[input][i];
    else
      for (int k = 0; k < x.count; ++k) slope *= k == input ? 1 : x.of[k][i];
    dx[i] = static_cast<float>(dy[i] * slope);
  }
};

// Of equal inputs 0 and 1 the second; later inputs only when larger.
CORTADO_EVERYWHERE inline int largest(const Inputs& x, int64_t i) {
  int best = x.of[0][i] > x.of[1][i] ? 0 : 1;
  for (int k = 2; k < x.count; ++k)
    if (x.of[k][i] > x.of[best][i]) best = k;
  return best;
}
struct EltwiseMaximum {
  Inputs x;
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    float value = x.of[largest(x, i)][i];
    for (int k = 0; k < x.count; ++k) value += x.of[k][i] * 0;
    y[i] = value;
  }
};
struct EltwiseMaximumGradient {
  Inputs x;
  const float* dy;
  int input;
  float* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const { dx[i] = dy[i] * (largest(x, i) == input ? 1 : 0); }
};

class EltwiseKernel : public Kernel {
 public:
  using Operation = EltwiseOptions::Operation;

  EltwiseKernel(const EltwiseOptions& options, const Task& task)
      : options_(options), size_(task.local_output(0).size()) {
    std::ranges::fill(factors_.of, 1.0);
    std::ranges::copy(options.coeff, factors_.of);
  }
  std::string name() const override { return "gpu eltwise"; }
  BackwardReads backward_reads() const override {
    const bool product = options_.operation == Operation::prod;
    return {.inputs = options_.operation != Operation::sum, .outputs = product && !options_.stable_prod_grad};
  }

  void forward(const Arguments& a) override {
    const Inputs x = pointers<const float>(a.inputs);
    switch (options_.operation) {
      case Operation::sum:
        return for_each(a.stream, size_, WeightedSum{x, factors_, a.outputs[0]});
      case Operation::prod:
        return for_each(a.stream, size_, EltwiseProduct{x, a.outputs[0]});
      case Operation::max:
        return for_each(a.stream, size_, EltwiseMaximum{x, a.outputs[0]});
    }
  }
  void backward(const Arguments& a) override {
    const float* dy = a.output_gradients[0];
    for (int k = 0; k < static_cast<int>(a.input_gradients.size()); ++k) {
      float* const dx = a.input_gradients[static_cast<size_t>(k)];
      if (!dx) continue;
      if (options_.operation == Operation::sum) {
        for_each(a.stream, size_, ScaledGradient{dy, factors_.of[k], dx});
      } else if (options_.operation == Operation::prod) {
        const float* y = options_.stable_prod_grad ? nullptr : a.outputs[0];
        for_each(a.stream, size_, EltwiseProductGradient{pointers<const float>(a.inputs), y, dy, k, dx});
      } else {
        for_each(a.stream, size_, EltwiseMaximumGradient{pointers<const float>(a.inputs), dy, k, dx});
      }
    }
  }

 private:
  EltwiseOptions options_;
  int64_t size_;
  Coefficients factors_;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_eltwise(const Task& task) {
  const auto* layer = dynamic_cast<const Eltwise*>(&task.layer());
  if (!layer) return {nullptr, "not an Eltwise"};
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  if (task.inputs.size() > gpu::most_pointers) return {nullptr, "more than 64 inputs"};
  return gpu::offered<gpu::EltwiseKernel>(layer->options(), task);
}

}  // namespace cortado
