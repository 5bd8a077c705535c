#include "cortado/layers/scale.h"

#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/sums.h"
#include "cortado/kernels/gpu/values.h"
#include "cortado/layers/bias.h"

namespace cortado {
namespace gpu {
namespace {

// y = x * scale[c] + bias[c]; null: 1 and 0.
template <typename E>
struct ScaledValue {
  const E* x;  // of the channel, in the first row
  int64_t channels;
  float scale, bias;
  CORTADO_EVERYWHERE E operator()(int64_t row) const {
    return rounded<E>(value_of(x[row * channels]) * scale + bias);
  }
};
template <typename E>
struct Scaled {
  const E* x;
  const float *scale, *bias;
  int64_t channels;
  CORTADO_EVERYWHERE ScaledValue<E> operator()(int64_t c) const {
    return {x + c, channels, scale ? scale[c] : 1, bias ? bias[c] : 0};
  }
};

// What a channel's gradient adds up: dy * x, or dy where x is null.
template <typename E>
struct ScaleTerm {
  const E *x, *dy;
  int64_t channels;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t c) const {
    const int64_t i = row * channels + c;
    return x ? static_cast<double>(value_of(x[i])) * value_of(dy[i]) : value_of(dy[i]);
  }
};

class ScaleKernel : public Kernel {
 public:
  // `scale` and `bias`: the number of that parameter; -1: none.
  ScaleKernel(const Task& task, int scale, int bias) : scale_(scale), bias_(bias), type_(task.input_type(0)) {
    const Part part = part_of(task.output_boxes[0]);
    channels_ = part.c.size;
    rows_ = part.elements() / channels_;
  }
  std::string name() const override { return "gpu scale"; }
  BackwardReads backward_reads() const override { return {.inputs = scale_ >= 0, .outputs = false}; }
  bool in_place() const override { return true; }
  Bytes scratch_bytes() const override {
    return sum_scratch(rows_, channels_) + Bytes{channels_ * int64_t{sizeof(double)}};
  }

  void forward(const Arguments& a) override {
    const float* bias = bias_ < 0 ? nullptr : a.parameters[bias_];
    with_tensor_type(type_, [&]<typename E>() {
      for_each_in_columns(a.stream, in_rows<E>(a.outputs[0]),
                          Scaled<E>{elements<E>(a.inputs[0]), factor(a), bias, channels_});
    });
  }
  void backward(const Arguments& a) override {
    with_tensor_type(type_, [&]<typename E>() { backward_of<E>(a); });
  }

 private:
  template <typename E>
  void backward_of(const Arguments& a) const {
    const E* dy = elements<E>(a.output_gradients[0]);
    if (scale_ >= 0 && a.parameter_gradients[scale_])
      add_up(a, ScaleTerm<E>{elements<E>(a.inputs[0]), dy, channels_}, a.parameter_gradients[scale_]);
    if (bias_ >= 0 && a.parameter_gradients[bias_])
      add_up(a, ScaleTerm<E>{nullptr, dy, channels_}, a.parameter_gradients[bias_]);
    if (a.input_gradients[0])
      for_each_in_columns(a.stream, in_rows<E>(a.input_gradients[0]),
                          Scaled<E>{dy, factor(a), nullptr, channels_});
  }
  template <typename E>
  Columns<E> in_rows(float* to) const {
    return {rows_, channels_, elements<E>(to), channels_};
  }
  const float* factor(const Arguments& a) const { return scale_ < 0 ? nullptr : a.parameters[scale_]; }
  template <typename Term>
  void add_up(const Arguments& a, const Term& product, float* gradient) const {
    auto* totals = reinterpret_cast<double*>(a.scratch + sum_scratch(rows_, channels_).count);
    sum_rows(a.stream, rows_, channels_, a.scratch, totals, product);
    for_each(a.stream, channels_, RoundElement{totals, gradient});
  }

  int scale_, bias_;
  ElementType type_;
  int64_t channels_, rows_;
};

// Empty where the operand is a parameter along the channels.
std::string operand_refusal(const Broadcast& broadcast, const Task& task) {
  if (task.inputs.size() != 1) return "a scale or bias that is an input";
  const bool channels = broadcast.first_axis(task.inputs) == 1 && broadcast.operand(task.inputs).rank() == 1;
  return channels ? "" : "a scale or bias along other axes than the channels";
}

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_scale(const Task& task) {
  if (auto refusal = gpu::one_type_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  const auto* scale = dynamic_cast<const Scale*>(&task.layer());
  const auto* bias = dynamic_cast<const Bias*>(&task.layer());
  if (!scale && !bias) return {nullptr, "neither Scale nor Bias"};
  auto refusal = gpu::operand_refusal(scale ? scale->options().broadcast : bias->options().broadcast, task);
  if (!refusal.empty()) return {nullptr, std::move(refusal)};
  if (bias) return gpu::offered<gpu::ScaleKernel>(task, -1, 0);
  return gpu::offered<gpu::ScaleKernel>(task, 0, scale->options().bias_term ? 1 : -1);
}

}  // namespace cortado
