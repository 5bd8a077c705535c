#include "cortado/program/movement.h"

#include <algorithm>
#include <utility>

#include "cortado/parallel/collectives.h"

namespace cortado {

bool contiguous(const Box& part, const Box& held) {
  bool inside_run = false;  // an axis before, in the order of memory, has more than one index
  for (int place = 0; place < part.rank(); ++place) {
    const int axis = memory_axis(part.rank(), place);
    if (inside_run && part[axis] != held[axis]) return false;
    inside_run |= part[axis].size() > 1;
  }
  return true;
}

bool Movement::direct_send(const Part& part) const {
  return type() == from_type && contiguous(part.box, *from);
}
bool Movement::direct_receive(const Part& part) const {
  return !sums && type() == to_type && contiguous(part.box, *to);
}

Movement::Pattern Movement::pattern() const {
  if (group.empty()) return Pattern::messages;
  const bool one = std::ranges::count_if(chunks, [](const auto& chunk) { return chunk.has_value(); }) == 1;
  if (sums) return one ? Pattern::reduce : Pattern::reduce_scatter;
  return one ? Pattern::broadcast : Pattern::allgather;
}

std::string_view name_of(Movement::Pattern pattern) {
  switch (pattern) {
    case Movement::Pattern::messages:
      return "messages";
    case Movement::Pattern::allgather:
      return "allgather";
    case Movement::Pattern::broadcast:
      return "broadcast";
    case Movement::Pattern::reduce_scatter:
      return "reduce-scatter";
    case Movement::Pattern::reduce:
      return "reduce";
  }
  return "?";
}

bool Movement::chunks_in_order() const {
  if (from_type != to_type) return false;
  const Box& all = sums ? *from : *to;
  const Strides strides = channels_last_strides(all.shape());
  int64_t end = 0;  // of the chunks so far
  for (const auto& chunk : chunks) {
    if (!chunk) continue;
    int64_t begin = 0;
    for (int axis = 0; axis < all.rank(); ++axis)
      begin += ((*chunk)[axis].begin - all[axis].begin) * strides[axis];
    if (begin != end || !contiguous(*chunk, all)) return false;
    end += chunk->shape().size();
  }
  return true;
}

int64_t Movement::packed() const {
  // A reduce-scatter leaves partial sums in its memory, so it never runs in the tensor's own memory.
  if (!group.empty()) return !sums && chunks_in_order() ? 0 : (sums ? from : to)->shape().size();
  int64_t elements = 0;
  for (const Part& part : sends) elements += direct_send(part) ? 0 : part.box.shape().size();
  for (const Part& part : receives) elements += direct_receive(part) ? 0 : part.box.shape().size();
  return elements;
}

Movement copy_movement(const Layout& owned, const Layout& needed, int rank, ElementType type) {
  Movement movement{.from = owned[rank], .to = needed[rank], .from_type = type, .to_type = type};
  const std::vector<Transfer> moves = transfers(owned, needed);
  for (const Transfer& transfer : moves) {
    if (transfer.from == rank && transfer.to == rank) {
      movement.local = transfer.box;
    } else if (transfer.from == rank) {
      movement.sends.push_back({transfer.to, transfer.box});
    } else if (transfer.to == rank) {
      movement.receives.push_back({transfer.from, transfer.box});
    }
  }
  if (std::optional<RingGroup> ring = ring_group(moves, needed, rank)) {
    movement.group = std::move(ring->members);
    movement.chunks = std::move(ring->chunks);
  }
  return movement;
}

Movement adjoint(const Movement& movement) {
  Movement back = movement;
  std::swap(back.from, back.to);
  std::swap(back.sends, back.receives);
  std::swap(back.from_type, back.to_type);
  back.sums = !movement.sums;
  return back;
}

Movement sum_movement(const Layout& addends, const Layout& owned, int rank, ElementType addend_type,
                      ElementType sum_type) {
  Movement movement = adjoint(copy_movement(owned, addends, rank, sum_type));
  movement.from_type = addend_type;
  return movement;
}

}  // namespace cortado
