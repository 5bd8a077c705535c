#include "cortado/parallel/collectives.h"

#include <algorithm>
#include <map>

#include "cortado/base/error.h"

namespace cortado {
namespace {

// The parts of the box that all `members` need, by the member that has each part. Nothing unless every member
// gets the same parts, all from members, and members give only to members.
std::optional<std::map<int, Box>> common_parts(std::span<const Transfer> moves,
                                               const std::vector<int>& members) {
  auto inside = [&](int rank) { return std::ranges::binary_search(members, rank); };
  std::map<int, std::map<int, Box>> parts;  // receiver -> sender -> box
  for (const Transfer& move : moves) {
    if (inside(move.from) != inside(move.to)) return std::nullopt;
    if (inside(move.to)) parts[move.to][move.from] = move.box;
  }
  for (const auto& [receiver, own] : parts) {
    if (own != parts.begin()->second) return std::nullopt;
  }
  return parts.begin()->second;
}

}  // namespace

int rounds_of(Collective collective) {
  switch (collective) {
    case Collective::allreduce:  // a reduce-scatter, then an allgather
      return 2;
    case Collective::reduce_scatter:
    case Collective::allgather:
    case Collective::push:
    case Collective::pull:
      return 1;
  }
  throw InternalError("a collective has no rounds");
}

std::optional<RingGroup> ring_group(std::span<const Transfer> moves, const Layout& needed, int rank) {
  const std::optional<Box>& box = needed[static_cast<size_t>(rank)];
  if (!box) return std::nullopt;
  RingGroup ring;
  for (size_t other = 0; other < needed.size(); ++other) {
    if (needed[other] == box) ring.members.push_back(static_cast<int>(other));
  }
  if (ring.members.size() < 2) return std::nullopt;
  const auto parts = common_parts(moves, ring.members);
  if (!parts || (parts->size() == 1 && box->shape().size() < smallest_broadcast)) return std::nullopt;
  for (int member : ring.members) {
    const auto found = parts->find(member);
    ring.chunks.push_back(found == parts->end() ? std::nullopt : std::optional(found->second));
  }
  return ring;
}

}  // namespace cortado
