#include "cortado/layers/inner_product.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

#include "cortado/kernels/onednn/engine.h"
#include "cortado/kernels/onednn/onednn.h"
#include "cortado/kernels/onednn/weighted.h"

namespace cortado {

namespace onednn {

namespace {

WeightedPasses plan_inner_product(const WeightedProblem& p) {
  using namespace dnnl;
  const auto weights = p.any_weights();
  return plan_passes(
      p,
      [&](const primitive_attr& attributes) {
        return inner_product_forward::primitive_desc(
            {p.forward_kind(), p.source, weights, p.bias_or_none(), p.target}, attributes, engine());
      },
      [&](const primitive_attr& attributes, const inner_product_forward::primitive_desc& hint) {
        return inner_product_backward_data::primitive_desc({p.source, weights, p.target_gradient}, attributes,
                                                           engine(), hint);
      },
      [&](const primitive_attr& attributes, const inner_product_forward::primitive_desc& hint) {
        return inner_product_backward_weights::primitive_desc(
            {p.source, p.any_weight_gradient(), p.bias_gradient_or_none(), p.target_gradient}, attributes,
            engine(), hint);
      });
}

// Outputs x inputs x space, the outputs first in memory, or last when transposed; `inner` are the other axes
// in their order in memory.
dnnl::memory::desc weights_of(const dnnl::memory::dims& extents, std::vector<int> inner, bool transpose) {
  inner.insert(transpose ? inner.end() : inner.begin(), 0);
  return ordered(extents, inner);
}

dnnl::memory::dims weight_extents(const Shape& input, int64_t outputs) {
  dnnl::memory::dims extents{outputs};
  for (int axis = 1; axis < input.rank(); ++axis) extents.push_back(input[axis]);
  return extents;
}

std::vector<int> spoken_axes(int rank) {
  std::vector<int> axes(static_cast<size_t>(rank) - 1);
  std::iota(axes.begin(), axes.end(), 1);
  return axes;
}

// Joins channels and space into one axis, which they are in a dense channels-last tensor. The columns of the
// weights then lie channels last as well.
void join_axes(WeightedProblem& problem, const Shape& input, bool transpose) {
  const auto extents = problem.canonical.dims();
  const int64_t outputs = extents[0], columns = input.size() / input[0];
  if (input[1] > 1 && columns > input[1]) {
    std::vector<int> last = spoken_axes(input.rank());
    std::rotate(last.begin(), last.begin() + 1, last.end());
    problem.permutation = {problem.canonical, weights_of(extents, last, transpose),
                           fmt::format("columns of {} channels last", fmt::join(extents, "x"))};
  }
  problem.source = activation(Shape{input[0], columns}, problem.factor);
  problem.canonical = weights_of({outputs, columns}, {1}, transpose);
}

// Whether the product is one of matrices. Weights that must stay canonical cannot have their columns
// permuted.
bool joins_axes(const WeightedProblem& problem, const Shape& input) {
  return problem.in_bf16() && input.rank() > 2 && input.size() > 0 && !problem.canonical_weights;
}

}  // namespace

}  // namespace onednn

KernelOffer make_onednn_inner_product(const Task& task) try {
  using namespace onednn;
  auto* layer = dynamic_cast<const InnerProduct*>(&task.layer());
  if (!layer) return {nullptr, "not an InnerProduct"};
  if (auto reason = misfit_of(task); !reason.empty()) return {nullptr, reason};
  const InnerProductOptions& options = layer->options();
  if (task.inputs[0].canonical_axis(options.axis) != 1) return {nullptr, "an axis other than 1"};
  if (task.inputs[0].rank() > 5) return {nullptr, "more than five axes"};
  WeightedProblem problem = weighted_problem(task, options.bias_term);
  const Shape input = task.local_input(0);
  problem.canonical = weights_of(weight_extents(input, task.local_output(0)[1]), spoken_axes(input.rank()),
                                 options.transpose);
  if (joins_axes(problem, input)) join_axes(problem, input, options.transpose);
  return offer_weighted_kernel(problem, plan_inner_product(problem));
} catch (const dnnl::error& error) {
  return {nullptr, error.what()};
}

}  // namespace cortado
