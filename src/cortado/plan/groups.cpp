#include "cortado/plan/groups.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <numeric>

#include "cortado/base/error.h"
#include "cortado/parallel/config_fit.h"
#include "cortado/parallel/layer_cut.h"
#include "cortado/parallel/strategy.h"

namespace cortado::plan {
namespace {

bool shares_parameters(const Network& network, const Network::Node& node) {
  return std::ranges::any_of(node.parameters,
                             [&](ParameterIndex p) { return network.parameters()[p].users.size() > 1; });
}

// The node that takes part in the group of `node`, if any.
NodeIndex follower(const Network& network, NodeIndex node) {
  const auto& outputs = network.nodes()[node].outputs;
  if (outputs.size() != 1) return {};
  const auto& tensor = network.tensors()[outputs[0]];
  if (tensor.consumers.size() != 1 || network.nodes()[node].loss_weights[0] != 0) return {};
  const auto& next = network.nodes()[tensor.consumers[0]];
  if (next.inputs.size() != 1 || next.outputs.size() != 1) return {};
  if (!network.nodes()[node].layer->may_fuse_with(*next.layer)) return {};
  return shares_parameters(network, next) ? NodeIndex() : tensor.consumers[0];
}

std::vector<int> divisors(int number) {
  std::vector<int> divisors;
  for (int d = 1; d <= number; ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return divisors;
}

// The degrees in the order of all_dimensions.
constexpr int Degrees::*dimensions[] = {&Degrees::n, &Degrees::c, &Degrees::d,
                                        &Degrees::h, &Degrees::w, &Degrees::r};

class Enumeration {
 public:
  Enumeration(const Network& network, const Group& group, int devices, std::string_view allowed)
      : devices_(devices), divisors_(divisors(devices)) {
    const auto& first = network.nodes()[group.nodes[0]];
    const auto outputs = network.shapes_of(first.outputs);
    most_ = most_degrees(*first.layer, network.shapes_of(first.inputs), outputs);
    if (most_.r > 1) most_channels_ = outputs[0][1];
    for (size_t i = 1; i < group.nodes.size(); ++i) {
      const auto& node = network.nodes()[group.nodes[i]];
      const Degrees most =
          most_degrees(*node.layer, network.shapes_of(node.inputs), network.shapes_of(node.outputs));
      for (auto dimension : dimensions) {
        if (dimension != &Degrees::r && dimension != &Degrees::c)
          most_.*dimension = std::min(most_.*dimension, most.*dimension);
      }
      most_.c = std::min(most_.c, most.c);
      most_channels_ = std::min<int64_t>(most_channels_, most.c);
    }
    if (!has_slices(network, first)) most_.c = most_.r = 1;
    for (size_t k = 0; k < std::size(dimensions); ++k)
      if (allowed.find(all_dimensions[k]) == std::string_view::npos) most_.*dimensions[k] = 1;
  }

  std::vector<ParallelConfig> run() {
    extend({}, 0);
    // Many devices first, and of as many the cut by sample: what is found first wins ties.
    std::ranges::stable_sort(found_,
                             [](const Degrees& a, const Degrees& b) { return a.product() > b.product(); });
    std::vector<ParallelConfig> configs;
    for (const Degrees& degrees : found_) {
      ParallelConfig& config = configs.emplace_back();
      config.degrees = degrees;
      config.devices.resize(static_cast<size_t>(degrees.product()));
      std::iota(config.devices.begin(), config.devices.end(), 0);
    }
    return configs;
  }

 private:
  void extend(Degrees degrees, size_t dimension) {
    if (dimension == std::size(dimensions)) {
      const bool channels_left = degrees.r == 1 || degrees.c * degrees.r <= most_channels_;
      if (devices_ % degrees.product() == 0 && channels_left) found_.push_back(degrees);
      return;
    }
    for (auto divisor = divisors_.rbegin(); divisor != divisors_.rend(); ++divisor) {
      if (*divisor > most_.*dimensions[dimension]) continue;
      Degrees more = degrees;
      more.*dimensions[dimension] = *divisor;
      if (more.product() <= devices_) extend(more, dimension + 1);
    }
  }

  int devices_;
  std::vector<int> divisors_;
  Degrees most_;
  int64_t most_channels_ = std::numeric_limits<int64_t>::max();  // parts of the sum that are owned
  std::vector<Degrees> found_;
};

}  // namespace

std::vector<Group> groups_of(const Network& network) {
  std::vector<Group> groups;
  IndexedVector<NodeIndex, bool> taken(network.nodes().size());
  for (NodeIndex n : indices(network.nodes())) {
    if (taken[n] || network.nodes()[n].layer->is_source()) continue;
    Group group{{n}};
    for (NodeIndex next = follower(network, group.nodes[0]); next; next = follower(network, next)) {
      group.nodes.push_back(next);
      taken[next] = true;
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

ParallelConfig following(ParallelConfig config) {
  config.degrees.c *= config.degrees.r;
  config.degrees.r = 1;
  return config;
}

std::string checked_dimensions(const std::string& letters) {
  if (letters.empty()) return std::string(all_dimensions);
  const size_t other = letters.find_first_not_of(all_dimensions);
  if (other == std::string::npos) return letters;
  throw UserError(
      fmt::format("there is no dimension '{}'; give letters of {}", letters[other], all_dimensions));
}

std::vector<ParallelConfig> candidates_of(const Network& network, const Group& group, int devices,
                                          std::string_view dimensions) {
  std::vector<ParallelConfig> candidates = Enumeration(network, group, devices, dimensions).run();
  const auto& first = network.nodes()[group.nodes[0]];
  const std::vector<Shape> inputs = network.shapes_of(first.inputs);
  const std::vector<Shape> outputs = network.shapes_of(first.outputs);
  if (!first.parameters.empty()) {  // else parts may read nothing
    std::erase_if(candidates, [&](const ParallelConfig& config) {
      return !parts_read(*first.layer, inputs, outputs, config);
    });
  }
  if (shares_parameters(network, first)) {
    std::erase_if(candidates,
                  [](const ParallelConfig& config) { return config.degrees.n != config.degrees.product(); });
  }
  return candidates;
}

}  // namespace cortado::plan
