#include "cortado/layers/arg_max.h"

#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/layers/axes.h"

namespace cortado {
namespace gpu {
namespace {

// One line of scores, of which the top_k largest are written, largest first; of equal ones the larger index
// first.
struct ArgMaxLine {
  SpokenOrder input, output;
  int64_t extent, after, top_k;
  bool values, both;  // write values in place of indices; or both
  const float* x;
  float* y;

  CORTADO_EVERYWHERE void operator()(int64_t line) const {
    const int64_t i = line / after, j = line % after;
    float zero = 0, value = 0;
    int64_t index = -1;
    for (int64_t c = 0; c < extent; ++c) zero += score(i, j, c) * 0;
    for (int64_t rank = 0; rank < top_k; ++rank) {
      next(i, j, rank > 0, value, index);
      const int64_t to = both ? 2 * i * top_k + rank : (i * top_k + rank) * after + j;
      y[output.offset(to)] = zero + (values && !both ? value : static_cast<float>(index));
      if (both) y[output.offset(to + top_k)] = zero + value;
    }
  }
  CORTADO_EVERYWHERE float score(int64_t i, int64_t j, int64_t c) const {
    return x[input.offset((i * extent + c) * after + j)];
  }
  // Goes on from the element `value` at `index`, if `bounded`, to the one after it in order.
  CORTADO_EVERYWHERE void next(int64_t i, int64_t j, bool bounded, float& value, int64_t& index) const {
    int64_t best = -1;
    float largest = 0;
    for (int64_t c = 0; c < extent; ++c) {
      const float other = score(i, j, c);
      const bool left = !bounded || other < value || (other == value && c < index);
      if (left && (best < 0 || other >= largest)) largest = other, best = c;
    }
    value = largest, index = best;
  }
};

class ArgMaxKernel : public Kernel {
 public:
  ArgMaxKernel(const ArgMaxOptions& options, const Task& task)
      : line_{SpokenOrder(task.local_input(0)),
              SpokenOrder(task.local_output(0)),
              0,
              1,
              options.top_k,
              options.out_max_val,
              options.out_max_val && !options.axis,
              nullptr,
              nullptr} {
    const Shape input = task.local_input(0);
    AxisView view(input, options.axis.value_or(0));
    if (!options.axis) view.before = input[0], view.extent = input.count(1), view.after = 1;
    line_.extent = view.extent, line_.after = view.after;
    lines_ = view.before * view.after;
  }
  std::string name() const override { return "gpu arg-max"; }
  void forward(const Arguments& a) override {
    ArgMaxLine line = line_;
    line.x = a.inputs[0], line.y = a.outputs[0];
    for_each(a.stream, lines_, line);
  }
  void backward(const Arguments&) override {}

 private:
  ArgMaxLine line_;
  int64_t lines_;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_arg_max(const Task& task) {
  const auto* layer = dynamic_cast<const ArgMax*>(&task.layer());
  if (!layer) return {nullptr, "not an ArgMax"};
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::ArgMaxKernel>(layer->options(), task);
}

}  // namespace cortado
