#include "cortado/plan/cost_the_same.h"

#include <algorithm>

#include "cortado/layers/problem.h"

namespace cortado::plan {
namespace {

bool same_parameters(const Network& network, const Network::Node& a, const Network::Node& b) {
  return std::ranges::equal(a.parameters, b.parameters, [&](ParameterIndex p, ParameterIndex q) {
    const Network::Parameter &one = network.parameters()[p], &other = network.parameters()[q];
    return one.users.size() == 1 && other.users.size() == 1 && one.wants_gradient == other.wants_gradient;
  });
}

bool same_tensors(const Network& network, const std::vector<TensorIndex>& a,
                  const std::vector<TensorIndex>& b) {
  return std::ranges::equal(a, b, [&](TensorIndex one, TensorIndex other) {
    const auto &first = network.tensors()[one], &second = network.tensors()[other];
    return first.shape == second.shape && first.type == second.type;
  });
}

// Whether the same inputs are samples, which a reader's memory holds (memory.h).
bool same_samples(const Network& network, const Network::Node& a, const Network::Node& b) {
  const auto sample = [&](TensorIndex tensor) {
    const NodeIndex producer = network.tensors()[tensor].producer;
    return network.nodes()[producer].layer->is_source();
  };
  return std::ranges::equal(a.inputs, b.inputs, {}, sample, sample);
}

}  // namespace

bool cost_the_same(const Network& network, const Group& a, const Group& b) {
  return std::ranges::equal(a.nodes, b.nodes, [&](NodeIndex i, NodeIndex k) {
    const Network::Node &one = network.nodes()[i], &other = network.nodes()[k];
    return same_tensors(network, one.outputs, other.outputs) &&
           same_tensors(network, one.inputs, other.inputs) && same_samples(network, one, other) &&
           one.propagate_down == other.propagate_down && one.loss_weights == other.loss_weights &&
           one.has_backward == other.has_backward && one.phase == other.phase &&
           same_parameters(network, one, other) && key_of(*one.layer) == key_of(*other.layer);
  });
}

}  // namespace cortado::plan
