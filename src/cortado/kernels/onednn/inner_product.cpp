#include "cortado/layers/inner_product.h"

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

// Outputs x inputs x space; files have the outputs first, or last when transposed.
dnnl::memory::desc canonical_weights(const Shape& input, int64_t outputs, bool transpose) {
  dnnl::memory::dims extents{outputs};
  for (int axis = 1; axis < input.rank(); ++axis) extents.push_back(input[axis]);
  if (!transpose) return row_major(extents);
  std::vector<int> axes;
  for (int axis = 1; axis < input.rank(); ++axis) axes.push_back(axis);
  axes.push_back(0);
  return ordered(extents, axes);
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
  problem.canonical = canonical_weights(task.local_input(0), task.local_output(0)[1], options.transpose);
  return offer_weighted_kernel(problem, plan_inner_product(problem));
} catch (const dnnl::error& error) {
  return {nullptr, error.what()};
}

}  // namespace cortado
