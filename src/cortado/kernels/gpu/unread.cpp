// Parameter and Silence: what reads no input.
#include <vector>

#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/layers/parameter.h"
#include "cortado/layers/silence.h"

namespace cortado {
namespace gpu {
namespace {

// Between a parameter's spoken order and the order of a tensor's memory.
struct SpokenElement {
  SpokenOrder order;
  const float* from;
  float* to;
  bool to_memory;
  CORTADO_EVERYWHERE void operator()(int64_t number) const {
    const int64_t offset = order.offset(number);
    if (to_memory)
      to[offset] = from[number];
    else
      to[number] = from[offset];
  }
};

class ParameterKernel : public Kernel {
 public:
  explicit ParameterKernel(const Shape& shape) : size_(shape.size()), order_(shape) {}
  std::string name() const override { return "gpu parameter"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }
  void forward(const Arguments& a) override {
    for_each(a.stream, size_, SpokenElement{order_, a.parameters[0], a.outputs[0], true});
  }
  void backward(const Arguments& a) override {
    if (a.parameter_gradients[0])
      for_each(a.stream, size_,
               SpokenElement{order_, a.output_gradients[0], a.parameter_gradients[0], false});
  }

 private:
  int64_t size_;
  SpokenOrder order_;
};

class SilenceKernel : public Kernel {
 public:
  explicit SilenceKernel(const Task& task) {
    for (const Box& box : task.input_boxes) sizes_.push_back(box.empty() ? 0 : box.shape().size());
  }
  std::string name() const override { return "gpu silence"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }
  void forward(const Arguments&) override {}
  void backward(const Arguments& a) override {
    for (size_t i = 0; i < sizes_.size(); ++i)
      if (a.input_gradients[i]) for_each(a.stream, sizes_[i], FillElement{0, a.input_gradients[i]});
  }

 private:
  std::vector<int64_t> sizes_;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_unread(const Task& task) {
  const bool silence = dynamic_cast<const Silence*>(&task.layer());
  if (!silence && !dynamic_cast<const Parameter*>(&task.layer()))
    return {nullptr, "neither Parameter nor Silence"};
  if (silence && task.all_f32()) return gpu::offered<gpu::SilenceKernel>(task);
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  return gpu::offered<gpu::ParameterKernel>(task.local_output(0));
}

}  // namespace cortado
