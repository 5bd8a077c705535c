#include "cortado/layers/inner_product.h"

#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"

namespace cortado {
namespace gpu {
namespace {

// Rows of `summed` numbers to rows of `outputs` numbers. The weight's order is spoken, channels before space;
// the tensor's memory has channels last.
struct ProductShape {
  int64_t rows, outputs, channels, space;
  bool transposed;
  CORTADO_EVERYWHERE int64_t summed() const { return channels * space; }
  CORTADO_EVERYWHERE int64_t in_memory(int64_t k) const { return k % space * channels + k / space; }
  CORTADO_EVERYWHERE int64_t weight(int64_t o, int64_t k) const {
    return transposed ? k * outputs + o : o * summed() + k;
  }
};

struct ProductElement {
  ProductShape shape;
  const float *x, *weight, *bias;  // bias: null: none
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t row = i / shape.outputs, o = i % shape.outputs;
    double sum = bias ? bias[o] : 0;
    for (int64_t k = 0; k < shape.summed(); ++k)
      sum += static_cast<double>(weight[shape.weight(o, k)]) * x[row * shape.summed() + shape.in_memory(k)];
    y[i] = static_cast<float>(sum);
  }
};
// Elements of the input in spoken order, so that neighbours read neighbouring weights.
struct ProductInputGradient {
  ProductShape shape;
  const float *dy, *weight;
  float* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t row = i / shape.summed(), k = i % shape.summed();
    double sum = 0;
    for (int64_t o = 0; o < shape.outputs; ++o)
      sum += static_cast<double>(weight[shape.weight(o, k)]) * dy[row * shape.outputs + o];
    dx[row * shape.summed() + shape.in_memory(k)] = static_cast<float>(sum);
  }
};
struct ProductWeightGradient {
  ProductShape shape;
  const float *x, *dy;
  float* dw;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t o = i / shape.summed(), k = i % shape.summed(), at = shape.in_memory(k);
    double sum = 0;
    for (int64_t row = 0; row < shape.rows; ++row)
      sum += static_cast<double>(dy[row * shape.outputs + o]) * x[row * shape.summed() + at];
    dw[shape.weight(o, k)] = static_cast<float>(sum);
  }
};
struct ProductBiasGradient {
  ProductShape shape;
  const float* dy;
  float* db;
  CORTADO_EVERYWHERE void operator()(int64_t o) const {
    double sum = 0;
    for (int64_t row = 0; row < shape.rows; ++row) sum += dy[row * shape.outputs + o];
    db[o] = static_cast<float>(sum);
  }
};

class InnerProductKernel : public Kernel {
 public:
  InnerProductKernel(const InnerProductOptions& options, const Task& task) : bias_(options.bias_term) {
    const Part input = part_of(task.input_boxes[0]);
    shape_ = {input.n.size, task.output_boxes[0][1].size(), input.c.size,
              input.d.size * input.h.size * input.w.size, options.transpose};
  }
  std::string name() const override { return "gpu inner-product"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  void forward(const Arguments& a) override {
    for_each(a.stream, shape_.rows * shape_.outputs,
             ProductElement{shape_, a.inputs[0], a.parameters[0], bias_ ? a.parameters[1] : nullptr,
                            a.outputs[0]});
  }
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    for_each(a.stream, shape_.rows * shape_.summed(),
             ProductInputGradient{shape_, a.output_gradients[0], a.parameters[0], a.input_gradients[0]});
  }
  void backward_weights(const Arguments& a) override {
    if (a.parameter_gradients[0])
      for_each(a.stream, shape_.outputs * shape_.summed(),
               ProductWeightGradient{shape_, a.inputs[0], a.output_gradients[0], a.parameter_gradients[0]});
    if (bias_ && a.parameter_gradients[1])
      for_each(a.stream, shape_.outputs,
               ProductBiasGradient{shape_, a.output_gradients[0], a.parameter_gradients[1]});
  }

 private:
  bool bias_;
  ProductShape shape_{};
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_inner_product(const Task& task) {
  const auto* layer = dynamic_cast<const InnerProduct*>(&task.layer());
  if (!layer) return {nullptr, "not an InnerProduct"};
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  if (task.inputs[0].canonical_axis(layer->options().axis) != 1) return {nullptr, "an axis other than 1"};
  return gpu::offered<gpu::InnerProductKernel>(layer->options(), task);
}

}  // namespace cortado
