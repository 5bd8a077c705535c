#include "cortado/layers/embed.h"

#include <limits>

#include "cortado/kernels/gpu/classes.h"
#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/sums.h"

namespace cortado {
namespace gpu {
namespace {

// Element number i * columns + column of the output, in spoken order, is made of input i. An input that names
// no row of the table makes its outputs not numbers.
struct EmbedTable {
  SpokenOrder input, output;
  int64_t inputs, rows, columns;
};

struct EmbedElement {
  EmbedTable t;
  const float *x, *weight, *bias;  // bias: null: none
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t column = i % t.columns, row = named_class(x[t.input.offset(i / t.columns)], t.rows);
    const float value = row < 0 ? std::numeric_limits<float>::quiet_NaN() : weight[row * t.columns + column];
    y[t.output.offset(i)] = value + (bias ? bias[column] : 0);
  }
};

struct EmbedWeightGradient {
  EmbedTable t;
  const float *x, *dy;
  float* dw;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const int64_t row = i / t.columns, column = i % t.columns;
    double sum = 0;
    for (int64_t input = 0; input < t.inputs; ++input)
      if (named_class(x[t.input.offset(input)], t.rows) == row)
        sum += dy[t.output.offset(input * t.columns + column)];
    dw[i] = static_cast<float>(sum);
  }
};

struct EmbedBiasTerm {
  EmbedTable t;
  const float* dy;
  CORTADO_EVERYWHERE double operator()(int64_t input, int64_t column) const {
    return dy[t.output.offset(input * t.columns + column)];
  }
};

class EmbedKernel : public Kernel {
 public:
  EmbedKernel(const EmbedOptions& options, const Task& task)
      : bias_(options.bias_term),
        table_{SpokenOrder(task.local_input(0)), SpokenOrder(task.local_output(0)),
               task.local_input(0).size(), options.input_dim,
               task.local_output(0)[task.outputs[0].rank() - 1]} {}
  std::string name() const override { return "gpu embed"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  Bytes scratch_bytes() const override {
    return sum_scratch(table_.inputs, table_.columns) + Bytes{table_.columns * int64_t{sizeof(double)}};
  }
  void forward(const Arguments& a) override {
    for_each(
        a.stream, table_.inputs * table_.columns,
        EmbedElement{table_, a.inputs[0], a.parameters[0], bias_ ? a.parameters[1] : nullptr, a.outputs[0]});
  }
  void backward(const Arguments& a) override {
    const float* dy = a.output_gradients[0];
    if (a.parameter_gradients[0])
      for_each(a.stream, table_.rows * table_.columns,
               EmbedWeightGradient{table_, a.inputs[0], dy, a.parameter_gradients[0]});
    if (!bias_ || !a.parameter_gradients[1]) return;
    auto* totals = reinterpret_cast<double*>(a.scratch + sum_scratch(table_.inputs, table_.columns).count);
    sum_rows(a.stream, table_.inputs, table_.columns, a.scratch, totals, EmbedBiasTerm{table_, dy});
    for_each(a.stream, table_.columns, RoundElement{totals, a.parameter_gradients[1]});
  }

 private:
  bool bias_;
  EmbedTable table_;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_embed(const Task& task) {
  const auto* layer = dynamic_cast<const Embed*>(&task.layer());
  if (!layer) return {nullptr, "not an Embed"};
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::EmbedKernel>(layer->options(), task);
}

}  // namespace cortado
