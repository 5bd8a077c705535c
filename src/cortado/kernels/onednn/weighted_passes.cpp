#include "cortado/kernels/onednn/weighted_passes.h"

#include <fmt/format.h>

#include "cortado/kernels/fused_relu.h"

namespace cortado::onednn {

WeightedProblem weighted_problem(const Task& task, bool bias) {
  WeightedProblem problem;
  const Shape source = task.local_input(0), target = task.local_output(0);
  problem.factor = task.all_f32() ? ElementType::f32 : ElementType::bf16;
  problem.narrows_source = task.input_type(0) != problem.factor;
  problem.source = activation(source, problem.factor);
  problem.target = activation(target, task.output_type(0));
  problem.target_gradient = activation(target, problem.factor);
  if (bias) problem.bias = row_major({target[1]});
  problem.canonical_weights = task.canonical_parameters;
  problem.relu = task.layers.size() > 1;
  problem.training = task.has_backward();
  problem.source_gradient = task.input_gradients[0];
  problem.weight_gradient = task.parameter_gradients[0];
  problem.bias_gradient = bias && task.parameter_gradients[1];
  return problem;
}

std::mutex& creation() {
  static std::mutex mutex;
  return mutex;
}

std::string misfit_of(const Task& task) {
  if (!task.all_f32()) {
    for (const ElementType type : {task.input_type(0), task.output_type(0)})
      if (size_of(type) > 4) return fmt::format("a tensor of {}", name_of(type));
    if (!has_bf16_instructions()) return "no instructions for bf16 products";
  }
  return chain_refusal(task);
}

dnnl::primitive_attr backward_attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::memory::desc infinity_of(const dnnl::memory::desc& target) {
  return row_major(dnnl::memory::dims(target.dims().size(), 1));
}

dnnl::primitive_attr forward_attributes(const WeightedProblem& problem) {
  dnnl::primitive_attr attributes = backward_attributes();
  if (!problem.relu) return attributes;
  dnnl::post_ops operations;
  const auto append_relu = [&](float slope) {
    operations.append_eltwise(1, dnnl::algorithm::eltwise_relu, slope, 0);
  };
  if (problem.in_bf16()) {
    constexpr float slope = 0x1p-100f;  // its square makes 0 of what is above -2^50, and little of the rest
    append_relu(slope);
    append_relu(slope);
  } else {
    operations.append_binary(dnnl::algorithm::binary_min, infinity_of(problem.target));
    append_relu(0);
  }
  attributes.set_post_ops(operations);
  return attributes;
}

dnnl::memory::desc stored_order(const WeightedProblem& problem, const dnnl::memory::desc& forward,
                                const std::optional<dnnl::memory::desc>& gradient) {
  if (problem.canonical_weights) return problem.canonical;
  if (!problem.in_bf16()) return forward;
  // Each pass reads a copy in bf16 anyway, so none of its orders matters. Padding costs updates and messages.
  constexpr size_t most_padding = 2;
  const bool padded = gradient->get_size() > most_padding * problem.canonical.get_size();
  return padded ? problem.canonical : *gradient;
}

}  // namespace cortado::onednn
