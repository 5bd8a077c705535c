// What the programs of all ranks ask of a placement, found once and not by each.
#include <map>

#include "cortado/program/placement.h"

namespace cortado {
namespace {

using Operation = Placement::Operation;

// Per rank: those whose key is the same as its own. Those without a key have no group.
template <typename Key>
std::vector<RankGroup> groups_of(const std::vector<std::optional<Key>>& keys) {
  std::map<Key, std::vector<int>> ranks;
  for (size_t rank = 0; rank < keys.size(); ++rank)
    if (keys[rank]) ranks[*keys[rank]].push_back(static_cast<int>(rank));
  std::vector<RankGroup> groups(keys.size());
  for (auto& [key, members] : ranks) {
    const RankGroup group(std::move(members));
    for (int member : group) groups[static_cast<size_t>(member)] = group;
  }
  return groups;
}

std::vector<RankGroup> replicas_of(const Layout& slices) {
  std::vector<std::optional<std::vector<int64_t>>> keys(slices.size());
  for (size_t rank = 0; rank < slices.size(); ++rank) {
    if (!slices[rank]) continue;
    std::vector<int64_t>& key = keys[rank].emplace();
    for (int axis = 0; axis < slices[rank]->rank(); ++axis)
      key.insert(key.end(), {(*slices[rank])[axis].begin, (*slices[rank])[axis].end});
  }
  return groups_of(keys);
}

std::vector<RankGroup> sum_groups_of(const Operation& operation, int ranks) {
  const ParallelConfig& config = operation.strategy.config;
  const bool all = config.degrees.c == 1 || operation.layer->sums(0);
  std::vector<std::optional<int>> channels(static_cast<size_t>(ranks));
  for (size_t i = 0; i < config.devices.size(); ++i)
    channels[static_cast<size_t>(config.devices[i])] =
        all ? 0 : coordinates_of(config.degrees, static_cast<int>(i)).c;
  return groups_of(channels);
}

OperationIndex follower_of(const Placement& placement, const Operation& operation) {
  if (operation.kind != Operation::Kind::compute || operation.outputs.size() != 1 ||
      operation.gradients != Operation::Gradients::own)
    return {};
  const auto& value = placement.values[operation.outputs[0]];
  if (value.loss_weight != 0 || value.partial || value.consumers.size() != 1) return {};
  const Operation& next = placement.operations[value.consumers[0]];
  const bool alone = next.kind == Operation::Kind::compute && next.inputs.size() == 1 &&
                     next.outputs.size() == 1 && next.input_gradients[0] == value.needs_gradient;
  const bool follows =
      alone && operation.layer->may_fuse_with(*next.layer) && next.domain == operation.domain;
  return follows ? value.consumers[0] : OperationIndex();
}

}  // namespace

void complete(Placement& placement) {
  for (Operation& operation : placement.operations) {
    if (operation.kind != Operation::Kind::compute) continue;
    operation.groups = sum_groups_of(operation, placement.ranks);
    operation.follower = follower_of(placement, operation);
  }
  for (const Layout& slices : placement.slices) placement.replicas.push_back(replicas_of(slices));
}

}  // namespace cortado
