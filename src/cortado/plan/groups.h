#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cortado/net/network.h"
#include "cortado/parallel/config.h"

namespace cortado::plan {

// Layers that are cut the same way: a layer and those after it that usually run in its kernel (BatchNorm,
// Scale, an activation). The planner decides for the first; the others follow, which spares every move
// between them.
struct Group {
  std::vector<NodeIndex> nodes;
};

// The groups of a network's nodes other than sources, in order.
std::vector<Group> groups_of(const Network& network);

// The configuration of the layers after the first: partial sums are owned as if the channels were cut c * r
// times.
ParallelConfig following(ParallelConfig config);

// The configurations of a group over the first devices of `devices`: every way to cut the first layer into as
// many parts as divide the number of devices, one per device, that the shapes of all its layers allow. Layers
// that share parameters with others are cut by sample alone. `dimensions`: along which cuts may be, of
// "ncdhwr".
inline constexpr std::string_view all_dimensions = "ncdhwr";
// The letters, or all of them for none. Throws UserError for others.
std::string checked_dimensions(const std::string& letters);
std::vector<ParallelConfig> candidates_of(const Network& network, const Group& group, int devices,
                                          std::string_view dimensions = all_dimensions);

}  // namespace cortado::plan
