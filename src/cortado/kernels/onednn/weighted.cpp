#include "cortado/kernels/onednn/weighted.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "cortado/kernels/native/update.h"
#include "cortado/kernels/onednn/engine.h"
#include "cortado/kernels/onednn/overflow.h"
#include "cortado/layers/pointwise.h"

namespace cortado::onednn {

namespace {

int64_t padded_to_cache_line(size_t bytes) { return static_cast<int64_t>((bytes + 63) / 64 * 64); }

// The one number that a fused ReLU's input is held against.
dnnl::memory::desc infinity_of(const dnnl::memory::desc& target) {
  return row_major(dnnl::memory::dims(target.dims().size(), 1));
}

// Scratch: a copy of the weights (or their gradient) in the order of the pass at work, where that is not the
// order they are kept in; then a copy in the canonical order, where reordering is faster in two steps; then
// the pass's own scratchpad.
class WeightedKernel : public Kernel {
 public:
  WeightedKernel(const WeightedProblem& problem, const WeightedPasses& passes)
      : problem_(problem),
        passes_(passes),
        stored_(problem.canonical_weights ? problem.canonical : passes.forward.weights) {
    for_each_pass([this](const WeightedPass& pass, bool needs_copy) {
      if (needs_copy || pass.weights != stored_) {
        copy_bytes_ = std::max(copy_bytes_, padded_to_cache_line(pass.weights.get_size()));
      }
      if (pass.weights != stored_ &&
          (reorders_slowly(stored_, pass.weights) || reorders_slowly(pass.weights, stored_))) {
        canonical_bytes_ = padded_to_cache_line(problem_.canonical.get_size());
      }
      pad_bytes_ = std::max(pad_bytes_, padded_to_cache_line(pass.scratchpad.get_size()));
    });
  }

  std::string name() const override { return "onednn " + passes_.forward.implementation; }
  Bytes scratch_bytes() const override { return {copy_bytes_ + canonical_bytes_ + pad_bytes_}; }
  BackwardReads backward_reads() const override {
    return {.inputs = problem_.parameter_gradient(), .outputs = problem_.relu};
  }
  bool overwrites_output_gradients() const override { return problem_.relu; }
  ParameterFormat parameter_format(int parameter) const override;

  void forward(const Arguments& arguments) override;
  void backward(const Arguments& arguments) override;
  void backward_weights(const Arguments& arguments) override;

 private:
  template <typename Visit>
  void for_each_pass(Visit&& visit) const {
    visit(passes_.forward, false);
    if (passes_.backward_data) visit(*passes_.backward_data, false);
    // A gradient of the bias alone still makes one of the weights.
    if (passes_.backward_weights) visit(*passes_.backward_weights, !problem_.weight_gradient);
  }
  dnnl::memory scratchpad(const WeightedPass& pass, const Arguments& arguments) const {
    return view(pass.scratchpad, arguments.scratch + copy_bytes_ + canonical_bytes_);
  }
  void reorder_weights(const dnnl::memory& from, const dnnl::memory& to, const Arguments& arguments) const;
  dnnl::memory weights_for(const WeightedPass& pass, const Arguments& arguments) const;
  void mask_gradient(const Arguments& arguments) const;
  bool hides_infinity(const std::unordered_map<int, dnnl::memory>& forward_memory, const float* input) const;

  WeightedProblem problem_;
  WeightedPasses passes_;
  dnnl::memory::desc stored_;
  int64_t copy_bytes_ = 0, canonical_bytes_ = 0, pad_bytes_ = 0;
};

ParameterFormat WeightedKernel::parameter_format(int parameter) const {
  if (parameter != 0 || stored_ == problem_.canonical) return {};
  ParameterFormat format;
  format.name = order_name(stored_);
  format.elements = static_cast<int64_t>(stored_.get_size() / sizeof(float));
  format.from_canonical = [canonical = problem_.canonical, stored = stored_](const float* from, float* to) {
    reorder(view(canonical, from), view(stored, to));
  };
  format.to_canonical = [canonical = problem_.canonical, stored = stored_](const float* from, float* to) {
    reorder(view(stored, from), view(canonical, to));
  };
  return format;
}

void WeightedKernel::reorder_weights(const dnnl::memory& from, const dnnl::memory& to,
                                     const Arguments& arguments) const {
  if (canonical_bytes_ == 0) return reorder(from, to);
  const dnnl::memory between = view(problem_.canonical, arguments.scratch + copy_bytes_);
  reorder(from, between);
  reorder(between, to);
}

// The weights in the order of the pass.
dnnl::memory WeightedKernel::weights_for(const WeightedPass& pass, const Arguments& arguments) const {
  dnnl::memory stored = view(stored_, arguments.parameters[0]);
  if (pass.weights == stored_) return stored;
  dnnl::memory copy = view(pass.weights, arguments.scratch);
  reorder_weights(stored, copy, arguments);
  return copy;
}

// Turns the gradient after the ReLU into that before it, where it lies. The first backward step does it,
// once.
void WeightedKernel::mask_gradient(const Arguments& arguments) const {
  float* dy = arguments.output_gradients[0];
  const auto count = static_cast<int64_t>(problem_.target.get_size() / sizeof(float));
  native::relu_mask(dy, dy, arguments.outputs[0], count);
}

void WeightedKernel::forward(const Arguments& arguments) {
  const WeightedPass& pass = passes_.forward;
  std::unordered_map<int, dnnl::memory> memory{{DNNL_ARG_SRC, view(problem_.source, arguments.inputs[0])},
                                               {DNNL_ARG_WEIGHTS, weights_for(pass, arguments)},
                                               {DNNL_ARG_DST, view(problem_.target, arguments.outputs[0])},
                                               {DNNL_ARG_SCRATCHPAD, scratchpad(pass, arguments)}};
  if (problem_.bias) memory.emplace(DNNL_ARG_BIAS, view(*problem_.bias, arguments.parameters[1]));
  static constexpr float infinity = std::numeric_limits<float>::infinity();
  if (problem_.relu)
    memory.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
                   view(infinity_of(problem_.target), &infinity));
  run("forward pass", pass.primitive, memory);
  if (problem_.relu && hides_infinity(memory, arguments.inputs[0]))
    arguments.outputs[0][0] = std::numeric_limits<float>::quiet_NaN();
}

// Whether a sum of products may have been minus infinity, which the fused ReLU has made 0. Something has
// overflowed since the last fused product, or nothing is hidden: if not in the input, then here or in a
// backward pass or an update, which running again tells apart.
bool WeightedKernel::hides_infinity(const std::unordered_map<int, dnnl::memory>& forward_memory,
                                    const float* input) const {
  if (!take_overflow()) return false;
  if (!all_finite(input, static_cast<int64_t>(problem_.source.get_size() / sizeof(float)))) return true;
  run("forward pass", passes_.forward.primitive, forward_memory);
  return take_overflow();
}

void WeightedKernel::backward(const Arguments& arguments) {
  if (!passes_.backward_data) return;
  if (problem_.relu && (!problem_.parameter_gradient() || arguments.data_first)) mask_gradient(arguments);
  const WeightedPass& pass = *passes_.backward_data;
  run("backward-data pass", pass.primitive,
      {{DNNL_ARG_DIFF_DST, view(problem_.target, arguments.output_gradients[0])},
       {DNNL_ARG_WEIGHTS, weights_for(pass, arguments)},
       {DNNL_ARG_DIFF_SRC, view(problem_.source, arguments.input_gradients[0])},
       {DNNL_ARG_SCRATCHPAD, scratchpad(pass, arguments)}});
}

void WeightedKernel::backward_weights(const Arguments& arguments) {
  if (!passes_.backward_weights) return;
  if (problem_.relu && !arguments.data_first) mask_gradient(arguments);
  const WeightedPass& pass = *passes_.backward_weights;
  const bool in_copy = !problem_.weight_gradient || pass.weights != stored_;
  float* target = problem_.weight_gradient ? arguments.parameter_gradients[0] : nullptr;
  dnnl::memory gradient = view(pass.weights, in_copy ? reinterpret_cast<float*>(arguments.scratch) : target);
  std::unordered_map<int, dnnl::memory> memory{
      {DNNL_ARG_SRC, view(problem_.source, arguments.inputs[0])},
      {DNNL_ARG_DIFF_DST, view(problem_.target, arguments.output_gradients[0])},
      {DNNL_ARG_DIFF_WEIGHTS, gradient},
      {DNNL_ARG_SCRATCHPAD, scratchpad(pass, arguments)}};
  if (problem_.bias_gradient) {
    memory.emplace(DNNL_ARG_DIFF_BIAS, view(*problem_.bias, arguments.parameter_gradients[1]));
  }
  run("backward-weights pass", pass.primitive, memory);
  if (problem_.weight_gradient && in_copy) reorder_weights(gradient, view(stored_, target), arguments);
}

}  // namespace

WeightedProblem weighted_problem(const Task& task, bool bias) {
  WeightedProblem problem;
  problem.source = activation(task.local_input(0));
  problem.target = activation(task.local_output(0));
  if (bias) problem.bias = row_major({task.local_output(0)[1]});
  problem.canonical_weights = task.canonical_parameters;
  problem.relu = task.layers.size() > 1;
  problem.training = task.has_backward();
  problem.source_gradient = task.input_gradients[0];
  problem.weight_gradient = task.parameter_gradients[0];
  problem.bias_gradient = bias && task.parameter_gradients[1];
  return problem;
}

std::string misfit_of_chain(const Task& task) {
  if (task.layers.size() == 1) return "";
  auto* pointwise = dynamic_cast<const Pointwise*>(task.layers[1].get());
  if (task.layers.size() == 2 && pointwise && pointwise->function() == PointwiseFunction(ReluOptions{}))
    return "";
  return fmt::format("a {} after it does not fuse", task.layers.back()->type());
}

dnnl::primitive_attr backward_attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::primitive_attr forward_attributes(const WeightedProblem& problem) {
  dnnl::primitive_attr attributes = backward_attributes();
  if (problem.relu) {
    dnnl::post_ops operations;
    operations.append_binary(dnnl::algorithm::binary_min, infinity_of(problem.target));
    operations.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    attributes.set_post_ops(operations);
  }
  return attributes;
}

KernelOffer offer_weighted_kernel(const WeightedProblem& problem, const WeightedPasses& passes) {
  for (const auto* pass : {&passes.forward, passes.backward_data ? &*passes.backward_data : nullptr,
                           passes.backward_weights ? &*passes.backward_weights : nullptr}) {
    if (pass && pass->implementation.starts_with("ref"))
      return {nullptr, "oneDNN has only its reference for it"};
  }
  if (order_name(passes.forward.weights).empty())
    return {nullptr, "oneDNN's order of the weights has no name"};
  return {std::make_unique<WeightedKernel>(problem, passes), ""};
}

}  // namespace cortado::onednn
