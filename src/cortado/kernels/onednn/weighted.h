#pragma once

#include <dnnl.hpp>
#include <memory>
#include <optional>
#include <string>

#include "cortado/kernels/kernel.h"

namespace cortado::onednn {

// A layer y = f(weights, x) + bias, perhaps with a ReLU after it: convolution, deconvolution, inner product.
struct WeightedProblem {
  dnnl::memory::desc source, target;
  dnnl::memory::desc canonical;            // of the weights: the order of Caffe's files
  std::optional<dnnl::memory::desc> bias;  // absent: no bias
  bool canonical_weights = false;          // keep the weights in the canonical order
  bool relu = false, training = false;
  bool source_gradient = false, weight_gradient = false, bias_gradient = false;

  bool parameter_gradient() const { return weight_gradient || bias_gradient; }
  dnnl::prop_kind forward_kind() const {
    return training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  }
  dnnl::memory::desc any_weights() const {
    return {canonical.dims(), dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
  }
  dnnl::memory::desc bias_or_none() const { return bias.value_or(dnnl::memory::desc()); }
  dnnl::memory::desc bias_gradient_or_none() const { return bias_gradient ? *bias : dnnl::memory::desc(); }
};

// The problem of a task, with the weights' canonical order still to fill in. The bias is parameter 1.
WeightedProblem weighted_problem(const Task& task, bool bias);

// Why the layers after the first keep a task from fitting, whatever the first one is. Empty: it fits.
std::string misfit_of_chain(const Task& task);

// One pass: the primitive and the order in which it wants, or makes, the weights.
struct WeightedPass {
  dnnl::primitive primitive;
  dnnl::memory::desc weights, scratchpad;
  std::string implementation;  // "jit:avx2"
};
struct WeightedPasses {
  WeightedPass forward;
  std::optional<WeightedPass> backward_data, backward_weights;
};

// Attributes of the forward pass: the fused ReLU; scratch memory is the caller's. oneDNN's ReLU makes zero of
// what is not a number, so the smaller of that and infinity stands before it (forward_arguments).
dnnl::primitive_attr forward_attributes(const WeightedProblem& problem);
dnnl::primitive_attr backward_attributes();

// Asks oneDNN for the passes that the problem wants. The functions give primitive descriptors, from the
// attributes and, backward, the forward descriptor.
template <typename Forward, typename BackwardData, typename BackwardWeights>
WeightedPasses plan_passes(const WeightedProblem& problem, Forward&& forward, BackwardData&& backward_data,
                           BackwardWeights&& backward_weights) {
  const auto hint = forward(forward_attributes(problem));
  WeightedPasses passes;
  passes.forward = {dnnl::primitive(hint.get()), hint.weights_desc(), hint.scratchpad_desc(),
                    hint.impl_info_str()};
  if (problem.source_gradient) {
    const auto data = backward_data(backward_attributes(), hint);
    passes.backward_data = {dnnl::primitive(data.get()), data.weights_desc(), data.scratchpad_desc(),
                            data.impl_info_str()};
  }
  if (problem.parameter_gradient()) {
    const auto weights = backward_weights(backward_attributes(), hint);
    passes.backward_weights = {dnnl::primitive(weights.get()), weights.diff_weights_desc(),
                               weights.scratchpad_desc(), weights.impl_info_str()};
  }
  return passes;
}

// The kernel, or a refusal when oneDNN has only its slow reference for a pass.
KernelOffer offer_weighted_kernel(const WeightedProblem& problem, const WeightedPasses& passes);

}  // namespace cortado::onednn
