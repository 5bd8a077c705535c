#include "cortado/layers/inner_product.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/kernels/cublaslt/product.h"
#include "cortado/kernels/fused_relu.h"
#include "cortado/kernels/gpu/layouts.h"
#include "cortado/kernels/gpu/part.h"
#include "cortado/kernels/gpu/workspace.h"
#include "cortado/kernels/gpu_libraries.h"
#include "cortado/kernels/tensor_type.h"

namespace cortado {
namespace cublaslt {
namespace {

int64_t padded(Bytes bytes) { return (bytes.count + 63) / 64 * 64; }

// The scratch memory of a kernel: what lies where, in bytes. Each pass uses it afresh.
struct Scratch {
  int64_t weights = 0;    // rounded to bf16
  int64_t bias = 0;       // the same
  int64_t source = 0;     // or its gradient, channels first
  int64_t sums = 0;       // of the bias's gradient
  int64_t workspace = 0;  // the library's
  int64_t bias_at() const { return weights; }
  int64_t source_at() const { return bias_at() + bias; }
  int64_t sums_at() const { return source_at() + source; }
  int64_t workspace_at() const { return sums_at() + sums; }
  int64_t bytes() const { return workspace_at() + workspace; }
};

class InnerProductKernel : public Kernel {
 public:
  InnerProductKernel(const InnerProductShape& shape, bool bias, const Task& task)
      : shape_(shape),
        bias_(bias),
        relu_(task.layers.size() > 1),
        parameter_gradient_(any_wanted(task.parameter_gradients)),
        gpu_(Gpu::current()),
        forward_(gpu_->product(forward_of(shape, bias))) {
    if (task.input_gradients[0]) data_ = gpu_->product(data_of(shape));
    if (task.parameter_gradients[0]) weights_ = gpu_->product(weights_of(shape));
    if (rounds()) scratch_.weights = padded(bytes_of(shape.outputs * shape.summed(), shape.type));
    if (rounds() && bias) scratch_.bias = padded(bytes_of(shape.outputs, shape.type));
    if (reorders()) scratch_.source = padded(bytes_of(shape.rows * shape.summed(), shape.type));
    if (bias && parameter_gradient_) scratch_.sums = padded(gpu::column_scratch(shape.rows, shape.outputs));
    scratch_.workspace = forward_.workspace();
    for (const auto* product : {&data_, &weights_})
      if (*product) scratch_.workspace = std::max(scratch_.workspace, (*product)->workspace());
    scratch_.workspace = gpu::workspace_bytes(scratch_.workspace).count;
  }
  std::string name() const override { return fmt::format("cublaslt{}", shape_.tf32 ? " tf32" : ""); }
  BackwardReads backward_reads() const override { return {.inputs = parameter_gradient_, .outputs = relu_}; }
  bool overwrites_output_gradients() const override { return relu_; }
  Bytes scratch_bytes() const override { return {scratch_.bytes()}; }

  void forward(const Arguments& a) override {
    run(forward_, a, {weights(a), source(a), bias(a), a.outputs[0]});
    if (!relu_) return;
    with_tensor_type(shape_.type, [&]<typename E>() {
      gpu::add_bias(a.stream, elements<E>(a.outputs[0]), nullptr, shape_.rows, shape_.outputs, true);
    });
  }
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0] || !data_) return;
    if (!parameter_gradient_ || a.input_gradients_first) mask(a);
    std::byte* const spoken = a.scratch + scratch_.source_at();
    void* const made = reorders() ? static_cast<void*>(spoken) : a.input_gradients[0];
    run(*data_, a, {weights(a), a.output_gradients[0], nullptr, made});
    if (!reorders()) return;
    with_tensor_type(shape_.type, [&]<typename E>() {
      gpu::transpose(a.stream, elements<E>(spoken), elements<E>(a.input_gradients[0]),
                     shape_.spoken().transposed());
    });
  }
  void backward_weights(const Arguments& a) override {
    if (!parameter_gradient_) return;
    if (!a.input_gradients_first) mask(a);
    const void *x = weights_ ? source(a) : nullptr, *dy = a.output_gradients[0];
    if (weights_ && a.parameter_gradients[0])
      run(*weights_, a,
          {shape_.transposed ? dy : x, shape_.transposed ? x : dy, nullptr, a.parameter_gradients[0]});
    if (!bias_ || !a.parameter_gradients[1]) return;
    with_tensor_type(shape_.type, [&]<typename E>() {
      gpu::sum_columns(a.stream, elements<E>(a.output_gradients[0]), shape_.rows, shape_.outputs,
                       a.scratch + scratch_.sums_at(), a.parameter_gradients[1]);
    });
  }

 private:
  bool rounds() const { return shape_.type != ElementType::f32; }
  bool reorders() const { return shape_.channels > 1 && shape_.space > 1; }

  void run(const Product& product, const Arguments& a, const ProductPointers& pointers) const {
    gpu_->run(product, a.stream, pointers, gpu::workspace_in(a.scratch + scratch_.workspace_at()));
  }
  static const void* rounded(const Arguments& a, const float* from, int64_t at, int64_t count) {
    auto* const to = reinterpret_cast<bf16*>(a.scratch + at);
    gpu::transpose(a.stream, from, to, {count, 1, 1});
    return to;
  }
  const void* weights(const Arguments& a) const {
    return rounds() ? rounded(a, a.parameters[0], 0, shape_.outputs * shape_.summed()) : a.parameters[0];
  }
  const void* bias(const Arguments& a) const {
    if (!bias_) return nullptr;
    return rounds() ? rounded(a, a.parameters[1], scratch_.bias_at(), shape_.outputs) : a.parameters[1];
  }
  const void* source(const Arguments& a) const {
    if (!reorders()) return a.inputs[0];
    std::byte* const spoken = a.scratch + scratch_.source_at();
    with_tensor_type(shape_.type, [&]<typename E>() {
      gpu::transpose(a.stream, elements<E>(a.inputs[0]), elements<E>(spoken), shape_.spoken());
    });
    return spoken;
  }
  void mask(const Arguments& a) const {
    if (!relu_) return;
    with_tensor_type(shape_.type, [&]<typename E>() {
      gpu::mask_gradient(a.stream, elements<E>(a.output_gradients[0]), elements<E>(a.outputs[0]),
                         shape_.rows * shape_.outputs);
    });
  }

  InnerProductShape shape_;
  bool bias_, relu_, parameter_gradient_;
  std::shared_ptr<Gpu> gpu_;
  Product forward_;
  std::optional<Product> data_, weights_;
  Scratch scratch_;
};

std::string misfit(const Task& task, const InnerProduct& layer) {
  if (auto reason = chain_refusal(task); !reason.empty()) return reason;
  if (task.inputs[0].canonical_axis(layer.options().axis) != 1) return "an axis other than 1";
  if (task.inputs[0].rank() > gpu::most_axes) return "more than five axes";
  if (task.input_boxes[0].empty() || task.output_boxes[0].empty()) return "an empty part";
  const bool one_type = task.input_type(0) == task.output_type(0);
  if (!task.all_f32() && (!one_type || task.input_type(0) != ElementType::bf16))
    return "tensors of two types";
  return "";
}

KernelOffer offer(const Task& task, bool tf32) try {
  const auto* layer = dynamic_cast<const InnerProduct*>(&task.layer());
  if (!layer) return {nullptr, "not an InnerProduct"};
  if (auto reason = misfit(task, *layer); !reason.empty()) return {nullptr, std::move(reason)};
  const gpu::Part input = gpu::part_of(task.input_boxes[0]);
  const InnerProductShape shape{input.n.size,
                                task.output_boxes[0][1].size(),
                                input.c.size,
                                input.d.size * input.h.size * input.w.size,
                                layer->options().transpose,
                                task.input_type(0),
                                tf32};
  return {std::make_unique<InnerProductKernel>(shape, layer->options().bias_term, task), ""};
} catch (const Refusal& refusal) {
  return {nullptr, refusal.what()};
}

}  // namespace
}  // namespace cublaslt

KernelOffer make_cublaslt_inner_product(const Task& task) { return cublaslt::offer(task, false); }

KernelOffer make_cublaslt_tf32_inner_product(const Task& task) {
  return task.all_f32() ? cublaslt::offer(task, true) : KernelOffer{nullptr, "tensors that are not f32"};
}

std::string cublaslt_version() {
  const auto number = static_cast<int>(cublasLtGetVersion());
  constexpr int major = 10000, minor = 100;
  return fmt::format("{}.{}.{}", number / major, number % major / minor, number % minor);
}

}  // namespace cortado
