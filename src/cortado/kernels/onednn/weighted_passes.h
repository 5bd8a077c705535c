#pragma once

#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cortado/kernels/kernel.h"
#include "cortado/kernels/onednn/engine.h"

namespace cortado::onednn {

// A layer y = f(weights, x) + bias, perhaps with a ReLU after it: convolution, deconvolution, inner product.
// Its factors are all of one type. Parameters and their gradients lie in f32.
struct WeightedProblem {
  ElementType factor = ElementType::f32;
  bool narrows_source = false;                 // from f32 in memory
  dnnl::memory::desc source;                   // and its gradient, as the passes read and write them
  dnnl::memory::desc target, target_gradient;  // as the passes write the one and read the other
  dnnl::memory::desc canonical;                // of the weights: the order of Caffe's files
  // A matrix product over an image joins the axes of its weights, channels last, where files have channels
  // first. Then `canonical` is the joined order, and this says both with their axes apart.
  struct Permutation {
    dnnl::memory::desc file, canonical;
    std::string name;
  };
  std::optional<Permutation> permutation;
  std::optional<dnnl::memory::desc> bias;  // absent: no bias
  bool canonical_weights = false;          // keep the weights in the canonical order
  bool relu = false, training = false;
  bool source_gradient = false, weight_gradient = false, bias_gradient = false;

  bool in_bf16() const { return factor == ElementType::bf16; }
  bool narrows_gradient() const { return target != target_gradient; }
  bool parameter_gradient() const { return weight_gradient || bias_gradient; }
  dnnl::prop_kind forward_kind() const {
    return training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  }
  dnnl::memory::desc any_weights() const {
    return {canonical.dims(), data_type(factor), dnnl::memory::format_tag::any};
  }
  dnnl::memory::desc any_weight_gradient() const {
    return {canonical.dims(), dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
  }
  dnnl::memory::desc bias_or_none() const { return bias.value_or(dnnl::memory::desc()); }
  dnnl::memory::desc bias_gradient_or_none() const { return bias_gradient ? *bias : dnnl::memory::desc(); }
};

// The problem of a task, with the weights' canonical order still to fill in. The bias is parameter 1.
WeightedProblem weighted_problem(const Task& task, bool bias);

// Why the task does not fit, whatever its first layer is: the layers after it, or types. Empty: it fits.
std::string misfit_of(const Task& task);

// One pass: the primitive and the order in which it wants, or makes, the weights.
struct WeightedPass {
  dnnl::primitive primitive;
  dnnl::memory::desc weights, scratchpad;
  std::string implementation;  // "jit:avx2"
};
struct WeightedPasses {
  WeightedPass forward;
  std::optional<WeightedPass> backward_data, backward_weights;
  dnnl::memory::desc stored;  // the weights and their gradient in memory
};

// Attributes of the forward pass: the fused ReLU; scratch memory is the caller's. oneDNN's ReLU makes zero of
// what is not a number. With factors in f32 the smaller of that and infinity comes before it
// (forward_arguments). With factors in bf16, whose sums note no overflow, the ReLU is one with a slope so
// small that twice it makes zero of any negative number, yet not of minus infinity.
dnnl::primitive_attr forward_attributes(const WeightedProblem& problem);
dnnl::primitive_attr backward_attributes();
// The one number that a fused ReLU's input is held against.
dnnl::memory::desc infinity_of(const dnnl::memory::desc& target);

// The order in which the weights and their gradient lie in memory, given those of the passes.
dnnl::memory::desc stored_order(const WeightedProblem& problem, const dnnl::memory::desc& forward,
                                const std::optional<dnnl::memory::desc>& gradient);

// Held while oneDNN makes primitives. Where several threads make brgemm convolutions at once, oneDNN 2.6
// makes about one of 1,600 that computes other sums for as long as it lives.
std::mutex& creation();

// Asks oneDNN for the passes that the problem wants. The functions give primitive descriptors, from the
// attributes and, backward, the forward descriptor.
template <typename Forward, typename BackwardData, typename BackwardWeights>
WeightedPasses plan_passes(const WeightedProblem& problem, Forward&& forward, BackwardData&& backward_data,
                           BackwardWeights&& backward_weights) {
  const std::lock_guard one_thread_at_a_time(creation());
  const auto hint = forward(forward_attributes(problem));
  auto planned = [](const auto& pass, const dnnl::memory::desc& weights) {
    return WeightedPass{dnnl::primitive(pass.get()), weights, pass.scratchpad_desc(), pass.impl_info_str()};
  };
  WeightedPasses passes;
  passes.forward = planned(hint, hint.weights_desc());
  if (problem.source_gradient) {
    const auto data = backward_data(backward_attributes(), hint);
    passes.backward_data = planned(data, data.weights_desc());
  }
  std::optional<dnnl::memory::desc> gradient;
  if (problem.parameter_gradient() || problem.in_bf16()) {  // unwanted, it still has an order
    const auto weights = backward_weights(backward_attributes(), hint);
    gradient = weights.diff_weights_desc();
    if (problem.parameter_gradient()) passes.backward_weights = planned(weights, *gradient);
  }
  passes.stored = stored_order(problem, passes.forward.weights, gradient);
  return passes;
}

// Makes the passes of a problem.
using PassPlanner = std::function<WeightedPasses(const WeightedProblem& problem)>;

}  // namespace cortado::onednn
