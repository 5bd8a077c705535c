#include "cortado/layers/dropout.h"

#include <cmath>

#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/random_bits.h"
#include "cortado/kernels/gpu/values.h"

namespace cortado {
namespace gpu {
namespace {

// y = kept ? x * scale : 0 * x. Which elements are kept is drawn by their global spoken numbers, so the mask
// is that of every other device.
struct DropPattern {
  RandomStream random;
  Part part;
  int64_t n, c, d, h, w;  // strides of spoken numbers
  uint32_t last_dropped;
  float scale;
  CORTADO_EVERYWHERE float factor(int64_t i) const {
    const Point at = part.point(i);
    const int64_t number = at.n * n + at.c * c + at.d * d + at.h * h + at.w * w;
    return random_bits(random, static_cast<uint64_t>(number)) > last_dropped ? scale : 0;
  }
};
template <typename E>
struct DroppedValue {
  DropPattern pattern;
  const E* x;
  CORTADO_EVERYWHERE E operator()(int64_t i) const { return rounded<E>(value_of(x[i]) * pattern.factor(i)); }
};

class DropoutKernel : public Kernel {
 public:
  DropoutKernel(const DropoutOptions& options, const Task& task)
      : active_(task.phase == Phase::train && options.ratio > 0), type_(task.input_type(0)) {
    const Part whole = part_of(Box::whole(task.outputs[0]));
    pattern_.part = part_of(task.output_boxes[0]);
    pattern_.w = 1;
    pattern_.h = whole.w.size;
    pattern_.d = pattern_.h * whole.h.size;
    pattern_.c = pattern_.d * whole.d.size;
    pattern_.n = pattern_.c * whole.c.size;
    pattern_.scale = static_cast<float>(options.kept_scale());
    // uniform < ratio, in integers
    if (active_) pattern_.last_dropped = static_cast<uint32_t>(std::ceil(std::ldexp(options.ratio, 32)) - 1);
  }
  std::string name() const override { return "gpu dropout"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }
  void forward(const Arguments& a) override { drop(a, a.inputs[0], a.outputs[0]); }
  void backward(const Arguments& a) override {
    if (a.input_gradients[0]) drop(a, a.output_gradients[0], a.input_gradients[0]);
  }

 private:
  void drop(const Arguments& a, const float* x, float* y) const {
    with_tensor_type(type_, [&]<typename E>() {
      const int64_t count = pattern_.part.elements();
      if (!active_) return for_each_value(a.stream, count, elements<E>(y), CopyValue<E>{elements<E>(x)});
      DropPattern pattern = pattern_;
      pattern.random = a.random;
      for_each_value(a.stream, count, elements<E>(y), DroppedValue<E>{pattern, elements<E>(x)});
    });
  }

  bool active_;
  ElementType type_;
  DropPattern pattern_{};
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_dropout(const Task& task) {
  const auto* layer = dynamic_cast<const Dropout*>(&task.layer());
  if (!layer) return {nullptr, "not a Dropout"};
  if (auto refusal = gpu::one_type_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::DropoutKernel>(layer->options(), task);
}

}  // namespace cortado
