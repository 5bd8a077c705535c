#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "cortado/kernels/cudnn/gpu.h"
#include "cortado/kernels/cudnn/problem.h"
#include "cortado/kernels/gpu/layouts.h"
#include "cortado/kernels/gpu/workspace.h"
#include "cortado/kernels/gpu_libraries.h"
#include "cortado/kernels/tensor_type.h"
#include "cortado/layers/deconvolution.h"

namespace cortado {
namespace cudnn {
namespace {

int64_t elements_of(const std::vector<int64_t>& extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}
int64_t padded(Bytes bytes) { return (bytes.count + 63) / 64 * 64; }

// The scratch memory of a kernel: what lies where, in bytes. Each pass uses it afresh.
struct Scratch {
  int64_t copy = 0;       // at 0: of the weights, or of their gradient, in the order and type of the factors
  int64_t source = 0;     // narrowed to bf16
  int64_t sums = 0;       // of the bias's gradient
  int64_t workspace = 0;  // cuDNN's
  int64_t source_at() const { return copy; }
  int64_t sums_at() const { return source_at() + source; }
  int64_t workspace_at() const { return sums_at() + sums; }
  int64_t bytes() const { return workspace_at() + workspace; }
};

// What runs the passes that are wanted, each named as the convolution's: a deconvolution's forward pass is
// `data`, and its gradient of the input `forward`.
struct Plans {
  bool bias = false, relu = false;  // part of the forward pass's graph
  std::optional<Plan> forward, data, weights;
};

Plan required(std::optional<Plan> plan, const char* pass) {
  if (!plan) throw Refusal(fmt::format("no {} whose rounding and workspace are allowed", pass));
  return *plan;
}

// As much of what comes after the products as a plan is there for.
void plan_forward(Gpu& gpu, const Problem& problem, Plans& made) {
  std::vector<std::pair<bool, bool>> after{{false, false}};
  if (!problem.spreads) after = {{problem.bias, problem.relu}, {problem.bias, false}, {false, false}};
  for (const auto& [bias, relu] : after) {
    if (made.forward) return;
    made.forward = gpu.plan({problem.convolution, Pass::forward, bias, relu});
    made.bias = bias, made.relu = relu;
  }
}

Plans plans_of(Gpu& gpu, const Problem& problem, const Task& task) {
  const Convolution& c = problem.convolution;
  const bool both = task.input_gradients[0];
  Plans made;
  if (both || !problem.spreads) {
    plan_forward(gpu, problem, made);
    required(made.forward, "forward pass");
  }
  if (both || problem.spreads) made.data = required(gpu.plan({c, Pass::backward_data}), "backward-data pass");
  if (task.parameter_gradients[0])
    made.weights = required(gpu.plan({c, Pass::backward_weights}), "backward-weights pass");
  return made;
}

class ConvolutionKernel : public Kernel {
 public:
  ConvolutionKernel(const Problem& problem, const Task& task)
      : problem_(problem),
        gpu_(Gpu::current()),
        plans_(plans_of(*gpu_, problem, task)),
        parameter_gradient_(any_wanted(task.parameter_gradients)) {
    const Convolution& c = problem.convolution;
    const int64_t weights = elements_of(c.w);
    files_ = {c.w[0], c.w[1], weights / c.w[0] / c.w[1]};
    const std::vector<int64_t>& output = problem.spreads ? c.x : c.y;
    outputs_ = output[1];
    rows_ = elements_of(output) / outputs_;
    if (copies_weights()) scratch_.copy = padded(bytes_of(weights, c.type));
    if (problem.narrows_source) scratch_.source = padded(bytes_of(elements_of(c.x), c.type));
    if (problem.bias && parameter_gradient_) scratch_.sums = padded(gpu::column_scratch(rows_, outputs_));
    for (const auto* plan : {&plans_.forward, &plans_.data, &plans_.weights})
      if (*plan) scratch_.workspace = std::max(scratch_.workspace, (*plan)->workspace);
    scratch_.workspace = gpu::workspace_bytes(scratch_.workspace).count;
  }

  std::string name() const override {
    const Convolution& c = problem_.convolution;
    return fmt::format("cudnn engine {}{}{}", (problem_.spreads ? plans_.data : plans_.forward)->engine,
                       c.tf32 ? " tf32" : "", plans_.relu ? " with ReLU" : "");
  }
  BackwardReads backward_reads() const override {
    return {.inputs = parameter_gradient_, .outputs = problem_.relu};
  }
  bool overwrites_output_gradients() const override { return problem_.relu; }
  Bytes scratch_bytes() const override { return {scratch_.bytes()}; }

  void forward(const Arguments& a) override {
    const float* bias = problem_.bias ? a.parameters[1] : nullptr;
    if (problem_.spreads) {
      spread(a, a.inputs[0], a.outputs[0]);
    } else {
      Gpu::Pointers pointers{{id_x, source(a)}, {id_w, weights(a)}, {id_y, a.outputs[0]}};
      if (plans_.bias) pointers.emplace_back(id_bias, bias);
      run(*plans_.forward, a, pointers);
    }
    const bool adds = problem_.bias && !plans_.bias, clips = problem_.relu && !plans_.relu;
    if (!adds && !clips) return;
    with_tensor_type(problem_.convolution.type, [&]<typename E>() {
      gpu::add_bias(a.stream, elements<E>(a.outputs[0]), adds ? bias : nullptr, rows_, outputs_, clips);
    });
  }
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0] || !plans_.data || !plans_.forward) return;
    if (!parameter_gradient_ || a.input_gradients_first) mask(a);
    const float* dy = a.output_gradients[0];
    if (problem_.spreads)
      run(*plans_.forward, a, {{id_x, dy}, {id_w, weights(a)}, {id_y, a.input_gradients[0]}});
    else
      spread(a, dy, a.input_gradients[0]);
  }
  void backward_weights(const Arguments& a) override {
    if (!parameter_gradient_) return;
    if (!a.input_gradients_first) mask(a);
    if (plans_.weights && a.parameter_gradients[0]) weight_gradient(a);
    if (!problem_.bias || !a.parameter_gradients[1]) return;
    with_tensor_type(problem_.convolution.type, [&]<typename E>() {
      gpu::sum_columns(a.stream, elements<E>(a.output_gradients[0]), rows_, outputs_,
                       a.scratch + scratch_.sums_at(), a.parameter_gradients[1]);
    });
  }

 private:
  bool reorders() const { return files_.rows > 1 && files_.columns > 1; }
  bool copies_weights() const { return reorders() || problem_.convolution.type != ElementType::f32; }

  void spread(const Arguments& a, const float* windows, float* image) const {
    run(*plans_.data, a, {{id_x, image}, {id_w, weights(a)}, {id_y, windows}});
  }
  void run(const Plan& plan, const Arguments& a, const Gpu::Pointers& pointers) const {
    gpu_->run(plan, a.stream, pointers, gpu::workspace_in(a.scratch + scratch_.workspace_at()));
  }
  const void* weights(const Arguments& a) const {
    if (!copies_weights()) return a.parameters[0];
    with_tensor_type(problem_.convolution.type, [&]<typename E>() {
      gpu::transpose(a.stream, a.parameters[0], elements<E>(a.scratch), files_);
    });
    return a.scratch;
  }
  const void* source(const Arguments& a) const {
    if (!problem_.narrows_source) return a.inputs[0];
    auto* const narrow = reinterpret_cast<bf16*>(a.scratch + scratch_.source_at());
    gpu::transpose(a.stream, a.inputs[0], narrow, {elements_of(problem_.convolution.x), 1, 1});
    return narrow;
  }
  void mask(const Arguments& a) const {
    if (!problem_.relu) return;
    with_tensor_type(problem_.convolution.type, [&]<typename E>() {
      gpu::mask_gradient(a.stream, elements<E>(a.output_gradients[0]), elements<E>(a.outputs[0]),
                         rows_ * outputs_);
    });
  }
  void weight_gradient(const Arguments& a) const {
    void* const made = copies_weights() ? a.scratch : static_cast<void*>(a.parameter_gradients[0]);
    const void *x = source(a), *dy = a.output_gradients[0];
    const bool spreads = problem_.spreads;
    run(*plans_.weights, a, {{id_x, spreads ? dy : x}, {id_w, made}, {id_y, spreads ? x : dy}});
    if (!copies_weights()) return;
    with_tensor_type(problem_.convolution.type, [&]<typename E>() {
      gpu::transpose(a.stream, elements<E>(a.scratch), a.parameter_gradients[0], files_.transposed());
    });
  }

  Problem problem_;
  std::shared_ptr<Gpu> gpu_;
  Plans plans_;
  bool parameter_gradient_;
  gpu::Matrices files_{};  // of each output, its weights in files: channels x taps
  int64_t outputs_ = 0, rows_ = 0;
  Scratch scratch_;
};

KernelOffer offer(const Task& task, bool tf32) try {
  const auto* gathers = dynamic_cast<const cortado::Convolution*>(&task.layer());
  const auto* spreads = dynamic_cast<const cortado::Deconvolution*>(&task.layer());
  if (!gathers && !spreads) return {nullptr, "neither a Convolution nor a Deconvolution"};
  const Problem problem =
      problem_of(task, gathers ? gathers->options() : spreads->options(), spreads != nullptr, tf32);
  if (!problem.refusal.empty()) return {nullptr, problem.refusal};
  return {std::make_unique<ConvolutionKernel>(problem, task), ""};
} catch (const Refusal& refusal) {
  return {nullptr, refusal.what()};
}

}  // namespace
}  // namespace cudnn

KernelOffer make_cudnn_convolution(const Task& task) { return cudnn::offer(task, false); }

KernelOffer make_cudnn_tf32_convolution(const Task& task) {
  return task.all_f32() ? cudnn::offer(task, true) : KernelOffer{nullptr, "tensors that are not f32"};
}

std::string cudnn_version() {
  const auto number = static_cast<int>(cudnnGetVersion());
  constexpr int major = 10000, minor = 100;
  return fmt::format("{}.{}.{}", number / major, number % major / minor, number % minor);
}

}  // namespace cortado
