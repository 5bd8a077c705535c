#include "cortado/net/gradients.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/pooling.h"

namespace cortado {
namespace {

bool is_trained(const Network::Parameter& parameter) {
  return parameter.spec.learnable && parameter.lr_mult != 0;
}

// Per tensor: whether a trained parameter lies before it.
IndexedVector<TensorIndex, bool> after_trained_parameters(
    const IndexedVector<NodeIndex, Network::Node>& nodes,
    const IndexedVector<ParameterIndex, Network::Parameter>& parameters, size_t tensor_count) {
  IndexedVector<TensorIndex, bool> after(tensor_count);
  for (const Network::Node& node : nodes) {
    bool trained =
        std::ranges::any_of(node.parameters, [&](ParameterIndex p) { return is_trained(parameters[p]); }) ||
        std::ranges::any_of(node.inputs, [&](TensorIndex t) { return after[t]; });
    for (TensorIndex output : node.outputs) after[output] = trained;
  }
  return after;
}

// Which element stochastic pooling takes in testing, so that its gradient could follow, is not defined.
void check_gradient_in_phase(const Network::Node& node) {
  const auto* pooling = dynamic_cast<const Pooling*>(node.layer.get());
  if (!pooling || node.phase == Phase::train) return;
  if (pooling->options().method != PoolingOptions::Method::stochastic) return;
  throw UserError(
      fmt::format("{}: layer '{}': stochastic pooling of phase TEST has no gradient; train it in phase TRAIN",
                  node.where.text(), node.name));
}

}  // namespace

void decide_gradients(IndexedVector<NodeIndex, Network::Node>& nodes,
                      IndexedVector<TensorIndex, Network::Tensor>& tensors,
                      IndexedVector<ParameterIndex, Network::Parameter>& parameters,
                      const IndexedVector<NodeIndex, std::vector<std::optional<bool>>>& requested,
                      bool from_outputs) {
  const auto starts = [&](const Network::Node& node, size_t output) {
    return node.loss_weights[output] != 0 ||
           (from_outputs && tensors[node.outputs[output]].consumers.empty());
  };
  IndexedVector<TensorIndex, bool> after = after_trained_parameters(nodes, parameters, tensors.size());
  IndexedVector<TensorIndex, bool> reached(tensors.size());  // a gradient arrives at the tensor
  for (NodeIndex n = nodes.end_index(); n > NodeIndex(0);) {
    Network::Node& node = nodes[--n];
    bool under_loss = false;
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      under_loss = under_loss || reached[node.outputs[o]] || starts(node, o);
    }
    node.propagate_down.assign(node.inputs.size(), false);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      bool differentiable = node.layer->differentiable(static_cast<int>(i));
      std::optional<bool> request = i < requested[n].size() ? requested[n][i] : std::nullopt;
      if (request.value_or(false) && !differentiable) {
        throw UserError(
            fmt::format("{}: layer '{}' has no gradient for bottom '{}'; remove its propagate_down",
                        node.where.text(), node.name, tensors[node.inputs[i]].name));
      }
      bool wanted = request.value_or(after[node.inputs[i]]) && differentiable && under_loss;
      if (wanted) check_gradient_in_phase(node);
      node.propagate_down[i] = wanted;
      node.has_backward = node.has_backward || wanted;
      if (wanted) reached[node.inputs[i]] = true;
    }
    for (ParameterIndex p : node.parameters) {
      if (!under_loss || !is_trained(parameters[p])) continue;
      parameters[p].wants_gradient = true;
      node.has_backward = true;
    }
  }
  for (TensorIndex t : indices(tensors)) {
    const Network::Node& producer = nodes[tensors[t].producer];
    const auto output = static_cast<size_t>(tensors[t].producer_output);
    tensors[t].needs_gradient = reached[t] || (producer.has_backward && starts(producer, output));
  }
}

}  // namespace cortado
