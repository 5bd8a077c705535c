#include "cortado/plan/groups.h"

#include <algorithm>
#include <numeric>

#include "cortado/base/error.h"
#include "cortado/layers/task.h"

namespace cortado::plan {
namespace {

bool shares_parameters(const Network& network, const Network::Node& node) {
  return std::ranges::any_of(node.parameters,
                             [&](int p) { return network.parameters()[p].users.size() > 1; });
}

// The node that takes part in the group of `node`; -1: none.
int follower(const Network& network, int node) {
  const auto& outputs = network.nodes()[node].outputs;
  if (outputs.size() != 1) return -1;
  const auto& tensor = network.tensors()[outputs[0]];
  if (tensor.consumers.size() != 1 || network.nodes()[node].loss_weights[0] != 0) return -1;
  const auto& next = network.nodes()[tensor.consumers[0]];
  if (next.inputs.size() != 1 || next.outputs.size() != 1) return -1;
  if (!may_follow(network.nodes()[node].layer->type(), next.layer->type())) return -1;
  return shares_parameters(network, next) ? -1 : tensor.consumers[0];
}

// Whether the layer may be cut so; the reason is of no interest here.
bool allowed(const Network& network, int index, const ParallelConfig& config, int devices) {
  const auto& node = network.nodes()[index];
  try {
    check_config(config, *node.layer, shapes(network, node.inputs), shapes(network, node.outputs), devices);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

std::vector<int> divisors(int number) {
  std::vector<int> divisors;
  for (int d = 1; d <= number; ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return divisors;
}

constexpr int Degrees::*dimensions[] = {&Degrees::n, &Degrees::c, &Degrees::d,
                                        &Degrees::h, &Degrees::w, &Degrees::r};

class Enumeration {
 public:
  Enumeration(const Network& network, const Group& group, int devices)
      : network_(network), group_(group), devices_(devices), divisors_(divisors(devices)) {
    // A dimension that may not be cut into any two parts is not tried with others.
    for (auto dimension : dimensions) {
      Degrees degrees;
      for (int divisor : divisors_) {
        degrees.*dimension = divisor;
        if (fits(degrees)) limits_.push_back(divisor);
      }
      usable_.push_back(std::move(limits_));
      limits_.clear();
    }
  }

  std::vector<ParallelConfig> run() {
    extend({}, 0);
    // Many devices first, and of as many the cut by sample: what is found first wins ties.
    std::ranges::stable_sort(found_, [](const ParallelConfig& a, const ParallelConfig& b) {
      return a.devices.size() > b.devices.size();
    });
    return std::move(found_);
  }

 private:
  ParallelConfig config_of(const Degrees& degrees) const {
    ParallelConfig config{.degrees = degrees, .devices = {}, .weights = {}};
    config.devices.resize(static_cast<size_t>(degrees.product()));
    std::iota(config.devices.begin(), config.devices.end(), 0);
    return config;
  }

  bool fits(const Degrees& degrees) const {
    ParallelConfig config = config_of(degrees);
    if (!allowed(network_, group_.nodes[0], config, devices_)) return false;
    config = following(config);
    return std::all_of(group_.nodes.begin() + 1, group_.nodes.end(),
                       [&](int node) { return allowed(network_, node, config, devices_); });
  }

  void extend(Degrees degrees, size_t dimension) {
    if (dimension == std::size(dimensions)) {
      if (devices_ % degrees.product() == 0 && fits(degrees)) found_.push_back(config_of(degrees));
      return;
    }
    for (auto divisor = usable_[dimension].rbegin(); divisor != usable_[dimension].rend(); ++divisor) {
      Degrees more = degrees;
      more.*dimensions[dimension] = *divisor;
      if (more.product() <= devices_) extend(more, dimension + 1);
    }
  }

  const Network& network_;
  const Group& group_;
  int devices_;
  std::vector<int> divisors_, limits_;
  std::vector<std::vector<int>> usable_;
  std::vector<ParallelConfig> found_;
};

}  // namespace

std::vector<Shape> shapes(const Network& network, const std::vector<int>& tensors) {
  std::vector<Shape> shapes;
  for (int tensor : tensors) shapes.push_back(network.tensors()[tensor].shape);
  return shapes;
}

std::vector<Group> groups_of(const Network& network) {
  std::vector<Group> groups;
  std::vector<bool> taken(network.nodes().size());
  for (size_t n = 0; n < network.nodes().size(); ++n) {
    if (taken[n] || network.nodes()[n].layer->is_source()) continue;
    Group group{{static_cast<int>(n)}};
    for (int next = follower(network, group.nodes[0]); next >= 0; next = follower(network, next)) {
      group.nodes.push_back(next);
      taken[static_cast<size_t>(next)] = true;
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

std::vector<ParallelConfig> candidates_of(const Network& network, const Group& group, int devices) {
  std::vector<ParallelConfig> candidates = Enumeration(network, group, devices).run();
  if (shares_parameters(network, network.nodes()[group.nodes[0]])) {
    std::erase_if(candidates,
                  [](const ParallelConfig& config) { return config.degrees.n != config.degrees.product(); });
  }
  return candidates;
}

}  // namespace cortado::plan
