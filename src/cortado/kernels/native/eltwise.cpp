#include "cortado/layers/eltwise.h"

#include <algorithm>

#include "cortado/kernels/carry.h"
#include "cortado/kernels/fused_relu.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/elementwise.h"
#include "cortado/kernels/native/native.h"

namespace cortado {
namespace native {
namespace {

// y = relu(sum coeff_i x_i), the ReLU being optional. Where all coefficients are 1 the gradient of each input
// is that of the output, masked in place by the ReLU.
template <typename E>
class SumKernel : public Kernel {
 public:
  SumKernel(const Task& task, std::vector<float> coefficients, bool relu)
      : size_(task.local_output(0).size()), coefficients_(std::move(coefficients)), relu_(relu) {
    plain_ = std::ranges::all_of(coefficients_, [](float factor) { return factor == 1; });
  }

  std::string name() const override { return relu_ ? "native sum-relu" : "native sum"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = relu_}; }
  bool in_place() const override { return true; }
  bool passes_output_gradient() const override { return plain_; }
  bool overwrites_output_gradients() const override { return plain_ && relu_; }

  void forward(const Arguments& arguments) override { relu_ ? sum<true>(arguments) : sum<false>(arguments); }

  void backward(const Arguments& arguments) override {
    const E* y = elements<E>(arguments.outputs[0]);
    E* dy = elements<E>(arguments.output_gradients[0]);
    if (plain_) {
      if (relu_) mask(dy, y, 1, dy);
      return;
    }
    // Input 0 last: its gradient may lie where the output's does.
    for (size_t i = coefficients_.size(); i-- > 0;) {
      if (!arguments.input_gradients[i]) continue;
      mask(dy, relu_ ? y : nullptr, coefficients_[i], elements<E>(arguments.input_gradients[i]));
    }
  }

 private:
  template <bool relu>
  void sum(const Arguments& arguments) const {
    const E *a = elements<E>(arguments.inputs[0]), *b = elements<E>(arguments.inputs[1]);
    E* y = elements<E>(arguments.outputs[0]);
    const size_t count = coefficients_.size();
    auto pass = [&]<bool plain>() {
      map_elements(y, size_, a == y, [&]<typename V>(int64_t i) {
        V total;
        if constexpr (plain) {
          total = load<V>(a + i) + load<V>(b + i);
          for (size_t k = 2; k < count; ++k) total += load<V>(input(arguments, k) + i);
        } else {
          total = load<V>(a + i) * coefficients_[0] + load<V>(b + i) * coefficients_[1];
          for (size_t k = 2; k < count; ++k) total += load<V>(input(arguments, k) + i) * coefficients_[k];
        }
        if constexpr (relu) total = total > 0 ? total : 0 * total;
        return total;
      });
    };
    plain_ ? pass.template operator()<true>() : pass.template operator()<false>();
  }

  static const E* input(const Arguments& arguments, size_t k) { return elements<E>(arguments.inputs[k]); }

  // dx = factor dy where y > 0 (everywhere when there is no y)
  void mask(const E* dy, const E* y, float factor, E* dx) const {
    map_elements(dx, size_, dx == dy, [&]<typename V>(int64_t i) {
      V gradient = load<V>(dy + i) * factor;
      return y ? (load<V>(y + i) > 0 ? gradient : 0 * gradient) : gradient;
    });
  }

  int64_t size_;
  std::vector<float> coefficients_;
  bool relu_, plain_;
};

// y = x_0 x_1 ...; dx_i = dy times the other inputs, or dy y / x_i.
template <typename E>
class ProductKernel : public Kernel {
 public:
  ProductKernel(const Task& task, bool stable)
      : size_(task.local_output(0).size()), stable_(stable), backward_(task.has_backward()) {}

  std::string name() const override { return "native product"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = !stable_}; }
  bool in_place() const override { return !backward_; }

  void forward(const Arguments& arguments) override {
    const std::vector<const float*>& x = arguments.inputs;
    E* y = elements<E>(arguments.outputs[0]);
    map_elements(y, size_, x[0] == arguments.outputs[0], [&]<typename V>(int64_t i) {
      V product = load<V>(elements<E>(x[0]) + i);
      for (size_t k = 1; k < x.size(); ++k) product *= load<V>(elements<E>(x[k]) + i);
      return product;
    });
  }

  void backward(const Arguments& arguments) override {
    const std::vector<const float*>& x = arguments.inputs;
    const E *dy = elements<E>(arguments.output_gradients[0]), *y = elements<E>(arguments.outputs[0]);
    for (size_t input = 0; input < x.size(); ++input) {
      E* dx = elements<E>(arguments.input_gradients[input]);
      if (!dx) continue;
      map_elements(dx, size_, false, [&]<typename V>(int64_t i) {
        V gradient = load<V>(dy + i);
        if (!stable_) return gradient * (load<V>(y + i) / load<V>(elements<E>(x[input]) + i));
        for (size_t k = 0; k < x.size(); ++k) {
          if (k != input) gradient *= load<V>(elements<E>(x[k]) + i);
        }
        return gradient;
      });
    }
  }

 private:
  int64_t size_;
  bool stable_, backward_;
};

// An element as a float, and back.
inline float number(float value) { return value; }
inline float number(bf16 value) { return to_float(value); }
template <typename E>
inline E element(float value) {
  if constexpr (std::is_same_v<E, float>) {
    return value;
  } else {
    return to_bf16(value);
  }
}

// y = max(x_0, x_1, ...). Keeps, per element, the input that was largest: of equal inputs 0 and 1 the second,
// of others the earlier.
template <typename E>
class MaximumKernel : public Kernel {
 public:
  explicit MaximumKernel(const Task& task)
      : size_(task.local_output(0).size()), backward_(task.has_backward()) {}

  std::string name() const override { return "native maximum"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }
  Bytes saved_bytes() const override { return {backward_ ? size_ : 0}; }
  bool saves_by_samples() const override { return true; }
  bool in_place() const override { return true; }

  void forward(const Arguments& arguments) override {
    auto* from = reinterpret_cast<uint8_t*>(arguments.saved);
    E* y = elements<E>(arguments.outputs[0]);
    auto input = [&](size_t k) { return elements<E>(arguments.inputs[k]); };
    parallel_ranges(size_, [&](int64_t begin, int64_t end) {
      take_larger(input(0), input(1), y, from, begin, end);
      for (size_t k = 2; k < arguments.inputs.size(); ++k) {
        replace_by_larger(input(k), static_cast<uint8_t>(k), y, from, begin, end);
      }
    });
  }

  void backward(const Arguments& arguments) override {
    const auto* from = reinterpret_cast<const uint8_t*>(arguments.saved);
    const E* dy = elements<E>(arguments.output_gradients[0]);
    // Input 0 last: its gradient may lie where the output's does.
    for (size_t k = arguments.inputs.size(); k-- > 0;) {
      E* dx = elements<E>(arguments.input_gradients[k]);
      if (!dx) continue;
      parallel_ranges(size_, [&](int64_t begin, int64_t end) {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) {
          const float gradient = number(dy[i]);
          dx[i] = element<E>(from[i] == k ? gradient : 0 * gradient);
        }
      });
    }
  }

 private:
  void take_larger(const E* a, const E* b, E* y, uint8_t* from, int64_t begin, int64_t end) const {
    if (backward_) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) from[i] = number(a[i]) > number(b[i]) ? 0 : 1;
    }
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const float first = number(a[i]), second = number(b[i]);
      y[i] = element<E>(carry(first > second ? first : second, 0 * first + 0 * second));
    }
  }

  void replace_by_larger(const E* x, uint8_t k, E* y, uint8_t* from, int64_t begin, int64_t end) const {
    if (backward_) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) from[i] = number(x[i]) > number(y[i]) ? k : from[i];
    }
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const float value = number(x[i]), largest = number(y[i]);
      y[i] = element<E>(carry(value > largest ? value : largest, value));
    }
  }

  int64_t size_;
  bool backward_;
};

}  // namespace
}  // namespace native

KernelOffer make_native_eltwise(const Task& task) {
  using Operation = EltwiseOptions::Operation;
  const auto* layer = dynamic_cast<const Eltwise*>(&task.layer());
  if (!layer) return {nullptr, "only for Eltwise"};
  if (auto refusal = chain_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  const bool relu = task.layers.size() > 1;
  const EltwiseOptions& options = layer->options();
  if (relu && options.operation != Operation::sum) return {nullptr, "only a sum and a ReLU are fused"};
  if (options.operation == Operation::sum) {
    std::vector<float> coefficients(task.inputs.size(), 1.0f);
    std::ranges::copy(options.coeff, coefficients.begin());
    return native::offer_by_type(task, [&]<typename E>() {
      return std::make_unique<native::SumKernel<E>>(task, std::move(coefficients), relu);
    });
  }
  if (options.operation == Operation::prod) {
    return native::offer_by_type(task, [&]<typename E>() {
      return std::make_unique<native::ProductKernel<E>>(task, options.stable_prod_grad);
    });
  }
  if (task.inputs.size() > 255) return {nullptr, "a maximum of more than 255 inputs"};
  return native::offer_by_type(
      task, [&]<typename E>() { return std::make_unique<native::MaximumKernel<E>>(task); });
}

}  // namespace cortado
