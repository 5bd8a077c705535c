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

bool same_tensors(const Network& network, const std::vector<int>& a, const std::vector<int>& b) {
  return std::ranges::equal(a, b, [&](int one, int other) {
    const auto &first = network.tensors()[static_cast<size_t>(one)],
               &second = network.tensors()[static_cast<size_t>(other)];
    return first.shape == second.shape && first.type == second.type;
  });
}

// Whether the same inputs are samples, which a reader's memory holds (memory.h).
bool same_samples(const Network& network, const Network::Node& a, const Network::Node& b) {
  const auto sample = [&](int tensor) {
    const int producer = network.tensors()[static_cast<size_t>(tensor)].producer;
    return network.nodes()[static_cast<size_t>(producer)].layer->is_source();
  };
  return std::ranges::equal(a.inputs, b.inputs, {}, sample, sample);
}

}  // namespace

bool cost_the_same(const Network& network, const Group& a, const Group& b) {
  return std::ranges::equal(a.nodes, b.nodes, [&](int i, int k) {
    const Network::Node &one = network.nodes()[static_cast<size_t>(i)],
                        &other = network.nodes()[static_cast<size_t>(k)];
    return same_tensors(network, one.outputs, other.outputs) &&
           same_tensors(network, one.inputs, other.inputs) && same_samples(network, one, other) &&
           one.propagate_down == other.propagate_down && one.loss_weights == other.loss_weights &&
           one.has_backward == other.has_backward && one.phase == other.phase &&
           same_parameters(network, one, other) && key_of(*one.layer) == key_of(*other.layer);
  });
}

}  // namespace cortado::plan
