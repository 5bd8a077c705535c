// Scale and Bias along any axes, their operands parameters or inputs; Axpy.
#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/places.h"
#include "cortado/kernels/gpu/sums.h"
#include "cortado/layers/axpy.h"
#include "cortado/layers/bias.h"
#include "cortado/layers/scale.h"

namespace cortado {
namespace gpu {
namespace {

// An operand has the axes [first, first + operand.rank) of the whole.
struct OperandPlace {
  AxesPlace whole, operand;
  int first = 0;

  CORTADO_EVERYWHERE int64_t rows() const { return whole.elements / operand.elements; }
  CORTADO_EVERYWHERE int64_t of(int64_t element) const {
    const Indices at = whole.indices(element);
    Indices own;
    for (int axis = 0; axis < operand.rank; ++axis) own[axis] = at[first + axis];
    return operand.offset(own);
  }
  // The row-th element of the whole that an element of the operand goes to.
  CORTADO_EVERYWHERE int64_t element(int64_t row, int64_t column) const {
    const Indices own = operand.indices(column);
    Indices at;
    for (int k = 0; k < whole.rank; ++k) {
      const int axis = whole.fastest[k];
      if (axis >= first && axis < first + operand.rank) {
        at[axis] = own[axis - first];
      } else {
        at[axis] = whole.begin[axis] + row % whole.extent[axis];
        row /= whole.extent[axis];
      }
    }
    return whole.offset(at);
  }
};

// y = x * factor + summand; null: 1 and 0.
struct BroadcastElement {
  OperandPlace factor_place, summand_place;
  const float *x, *factor, *summand;
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    double value = x[i];
    if (factor) value *= factor[factor_place.of(i)];
    if (summand) value += summand[summand_place.of(i)];
    y[i] = static_cast<float>(value);
  }
};

// dy * x, or dy where x is null.
struct BroadcastTerm {
  OperandPlace place;
  const float *x, *dy;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t column) const {
    const int64_t i = place.element(row, column);
    return x ? static_cast<double>(x[i]) * dy[i] : dy[i];
  }
};

class BroadcastKernel : public Kernel {
 public:
  enum class From { nowhere, input, parameter };
  struct Operand {
    From from = From::nowhere;
    size_t number = 0;  // of the input or parameter
    OperandPlace place = {};
  };

  BroadcastKernel(const Task& task, const Broadcast& broadcast, Operand factor, Operand summand)
      : factor_(place(task, broadcast, factor)), summand_(place(task, broadcast, summand)) {}
  std::string name() const override { return "gpu broadcast"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  Bytes scratch_bytes() const override {
    const OperandPlace& place = factor_.from == From::nowhere ? summand_.place : factor_.place;
    return sum_scratch(place.rows(), place.operand.elements) +
           Bytes{place.operand.elements * int64_t{sizeof(double)}};
  }

  void forward(const Arguments& a) override {
    run(a, a.inputs[0], value(factor_, a), value(summand_, a), a.outputs[0]);
  }
  void backward(const Arguments& a) override {
    const float* dy = a.output_gradients[0];
    if (float* gradient = gradient_of(factor_, a)) add_up(a, {factor_.place, a.inputs[0], dy}, gradient);
    if (float* gradient = gradient_of(summand_, a)) add_up(a, {summand_.place, nullptr, dy}, gradient);
    if (a.input_gradients[0]) run(a, dy, value(factor_, a), nullptr, a.input_gradients[0]);
  }

 private:
  static Operand place(const Task& task, const Broadcast& broadcast, Operand operand) {
    const Box box = broadcast.operand_box(task.inputs, task.output_boxes[0]);
    operand.place = {axes_place(task.output_boxes[0]), axes_place(box, operand.from == From::input),
                     broadcast.first_axis(task.inputs)};
    return operand;
  }
  static const float* value(const Operand& operand, const Arguments& a) {
    if (operand.from == From::nowhere) return nullptr;
    return operand.from == From::input ? a.inputs[operand.number] : a.parameters[operand.number];
  }
  static float* gradient_of(const Operand& operand, const Arguments& a) {
    if (operand.from == From::nowhere) return nullptr;
    return operand.from == From::input ? a.input_gradients[operand.number]
                                       : a.parameter_gradients[operand.number];
  }
  void run(const Arguments& a, const float* x, const float* factor, const float* summand, float* y) const {
    for_each(a.stream, factor_.place.whole.elements,
             BroadcastElement{factor_.place, summand_.place, x, factor, summand, y});
  }
  static void add_up(const Arguments& a, const BroadcastTerm& term, float* gradient) {
    const int64_t rows = term.place.rows(), columns = term.place.operand.elements;
    auto* totals = reinterpret_cast<double*>(a.scratch + sum_scratch(rows, columns).count);
    sum_rows(a.stream, rows, columns, a.scratch, totals, term);
    for_each(a.stream, columns, RoundElement{totals, gradient});
  }

  Operand factor_, summand_;
};

// One factor for each channel of each sample: column n * channels + c.
struct AxpyPlace {
  int64_t space, channels, elements;
  CORTADO_EVERYWHERE int64_t factor(int64_t i) const {
    return i / (space * channels) * channels + i % channels;
  }
  CORTADO_EVERYWHERE int64_t element(int64_t row, int64_t column) const {
    return (column / channels * space + row) * channels + column % channels;
  }
};

struct AxpyElement {
  AxpyPlace place;
  const float *factor, *x, *summand;  // summand: null: 0
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const double product = static_cast<double>(factor[place.factor(i)]) * x[i];
    y[i] = static_cast<float>(summand ? product + summand[i] : product);
  }
};

struct AxpyTerm {
  AxpyPlace place;
  const float *x, *dy;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t column) const {
    const int64_t i = place.element(row, column);
    return static_cast<double>(x[i]) * dy[i];
  }
};

class AxpyKernel : public Kernel {
 public:
  explicit AxpyKernel(const Task& task) {
    const Part part = part_of(task.output_boxes[0]);
    place_ = {part.d.size * part.h.size * part.w.size, part.c.size, part.elements()};
    columns_ = part.n.size * part.c.size;
  }
  std::string name() const override { return "gpu axpy"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  Bytes scratch_bytes() const override {
    return sum_scratch(place_.space, columns_) + Bytes{columns_ * int64_t{sizeof(double)}};
  }
  void forward(const Arguments& a) override {
    for_each(a.stream, place_.elements,
             AxpyElement{place_, a.inputs[0], a.inputs[1], a.inputs[2], a.outputs[0]});
  }
  void backward(const Arguments& a) override {
    const float* dy = a.output_gradients[0];
    if (a.input_gradients[0]) {
      auto* totals = reinterpret_cast<double*>(a.scratch + sum_scratch(place_.space, columns_).count);
      sum_rows(a.stream, place_.space, columns_, a.scratch, totals, AxpyTerm{place_, a.inputs[1], dy});
      for_each(a.stream, columns_, RoundElement{totals, a.input_gradients[0]});
    }
    if (a.input_gradients[1])
      for_each(a.stream, place_.elements,
               AxpyElement{place_, a.inputs[0], dy, nullptr, a.input_gradients[1]});
    if (a.input_gradients[2])
      for_each_value(a.stream, place_.elements, a.input_gradients[2], CopyValue<float>{dy});
  }

 private:
  AxpyPlace place_{};
  int64_t columns_ = 0;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_broadcast(const Task& task) {
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  using gpu::BroadcastKernel;
  using From = BroadcastKernel::From;
  const bool two = task.inputs.size() == 2;
  const BroadcastKernel::Operand first{two ? From::input : From::parameter, two ? size_t{1} : 0};
  if (const auto* bias = dynamic_cast<const Bias*>(&task.layer()))
    return gpu::offered<BroadcastKernel>(task, bias->options().broadcast, BroadcastKernel::Operand{}, first);
  const auto* scale = dynamic_cast<const Scale*>(&task.layer());
  if (!scale) return {nullptr, "neither Scale nor Bias"};
  BroadcastKernel::Operand summand;
  if (scale->options().bias_term) summand = {From::parameter, two ? size_t{0} : 1};
  return gpu::offered<BroadcastKernel>(task, scale->options().broadcast, first, summand);
}

KernelOffer make_gpu_axpy(const Task& task) {
  if (!dynamic_cast<const Axpy*>(&task.layer())) return {nullptr, "not an Axpy"};
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::AxpyKernel>(task);
}

}  // namespace cortado
