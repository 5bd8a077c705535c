#include "cortado/layers/softmax.h"

#include <cmath>

#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"

namespace cortado {
namespace gpu {
namespace {

// A tensor as rows along an axis of its memory, whose elements lie `after` apart.
struct AxisRows {
  int64_t rows = 0, extent = 0, after = 1;
  CORTADO_EVERYWHERE int64_t first(int64_t row) const { return row / after * extent * after + row % after; }
};

AxisRows rows_along(const Shape& shape, int axis) {
  AxisRows rows;
  axis = shape.canonical_axis(axis);
  for (int place = shape.rank() - 1; memory_axis(shape.rank(), place) != axis; --place)
    rows.after *= shape[memory_axis(shape.rank(), place)];
  rows.extent = shape[axis];
  rows.rows = shape.size() / std::max<int64_t>(1, rows.extent);
  return rows;
}

struct SoftmaxRow {
  AxisRows rows;
  const float* x;
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t row) const {
    const int64_t first = rows.first(row);
    float largest = x[first];
    for (int64_t k = 1; k < rows.extent; ++k) {
      const float value = x[first + k * rows.after];
      largest = value > largest ? value : largest;
    }
    double sum = 0;
    for (int64_t k = 0; k < rows.extent; ++k) {
      const int64_t i = first + k * rows.after;
      y[i] = expf(x[i] - largest) + x[i] * 0;
      sum += y[i];
    }
    const float factor = static_cast<float>(1 / sum);
    for (int64_t k = 0; k < rows.extent; ++k) y[first + k * rows.after] *= factor;
  }
};

struct SoftmaxRowGradient {
  AxisRows rows;
  const float *y, *dy;
  float* dx;
  CORTADO_EVERYWHERE void operator()(int64_t row) const {
    const int64_t first = rows.first(row);
    double product = 0;
    for (int64_t k = 0; k < rows.extent; ++k) {
      const int64_t i = first + k * rows.after;
      product += static_cast<double>(y[i]) * dy[i];
    }
    for (int64_t k = 0; k < rows.extent; ++k) {
      const int64_t i = first + k * rows.after;
      dx[i] = static_cast<float>(y[i] * (dy[i] - product));
    }
  }
};

class SoftmaxKernel : public Kernel {
 public:
  explicit SoftmaxKernel(const AxisRows& rows) : rows_(rows) {}
  std::string name() const override { return "gpu softmax"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = true}; }
  void forward(const Arguments& a) override {
    for_each(a.stream, rows_.rows, SoftmaxRow{rows_, a.inputs[0], a.outputs[0]});
  }
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    for_each(a.stream, rows_.rows,
             SoftmaxRowGradient{rows_, a.outputs[0], a.output_gradients[0], a.input_gradients[0]});
  }

 private:
  AxisRows rows_;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_softmax(const Task& task) {
  const auto* layer = dynamic_cast<const Softmax*>(&task.layer());
  if (!layer) return {nullptr, "not a Softmax"};
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  if (task.input_boxes[0] != task.output_boxes[0]) return {nullptr, "a part of the softmax axis"};
  return gpu::offered<gpu::SoftmaxKernel>(gpu::rows_along(task.local_input(0), layer->options().axis));
}

}  // namespace cortado
