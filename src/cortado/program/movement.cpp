#include "cortado/program/movement.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "cortado/base/error.h"
#include "cortado/parallel/collectives.h"

namespace cortado {
namespace {

// One rank's part of transfers(), and its ring_group(), found without what moves between others: of thousands
// of ranks each makes its own movements. tests/program/movement_test.cpp proves them equal.
class CopyOfRank {
 public:
  CopyOfRank(const Layout& owned, const Layout& needed, int rank)
      : owned_(owned), needed_(needed), rank_(static_cast<size_t>(rank)) {}

  // Boxes that the rank gets, its own ones too, by the rank that has them.
  std::vector<Movement::Part> gets() const {
    std::vector<Movement::Part> parts;
    const auto& box = needed_[rank_];
    if (!box) return parts;
    if (stays(rank_)) return {{static_cast<int>(rank_), *box}};
    int64_t missing = box->shape().size();
    for_each_owner(*box, [&](size_t from, const Box& common) {
      parts.push_back({static_cast<int>(from), common});
      missing -= common.shape().size();
    });
    if (missing == 0) return parts;
    throw InternalError(fmt::format("layout [{}] does not hold exactly once what rank {} needs: {}",
                                    text(owned_), rank_, box->text()));
  }

  // Boxes that it sends, by the rank that needs them.
  std::vector<Movement::Part> sends() const {
    std::vector<Movement::Part> parts;
    const auto& box = owned_[rank_];
    for (size_t to = 0; box && to < needed_.size(); ++to) {
      if (to == rank_ || !needed_[to] || !meets(*box, *needed_[to]) || stays(to)) continue;
      parts.push_back({static_cast<int>(to), box->intersect(*needed_[to])});
    }
    return parts;
  }

  // `gets`: of this rank.
  std::optional<RingGroup> ring(const std::vector<Movement::Part>& gets) const {
    const auto& box = needed_[rank_];
    if (!box || (gets.size() == 1 && box->shape().size() < smallest_broadcast)) return std::nullopt;
    RingGroup ring;
    for (size_t other = 0; other < needed_.size(); ++other)
      if (needed_[other] == box) ring.members.push_back(static_cast<int>(other));
    if (ring.members.size() < 2 || !all_get(gets, ring.members) || give_to_others(ring.members))
      return std::nullopt;
    auto part = gets.begin();
    for (int member : ring.members) {
      const bool has = part != gets.end() && part->peer == member;
      ring.chunks.push_back(has ? std::optional((part++)->box) : std::nullopt);
    }
    return ring;
  }

 private:
  static bool meets(const Box& a, const Box& b) {
    for (int axis = 0; axis < a.rank(); ++axis)
      if (std::max(a[axis].begin, b[axis].begin) >= std::min(a[axis].end, b[axis].end)) return false;
    return true;
  }
  bool stays(size_t rank) const { return owned_[rank] && owned_[rank]->contains(*needed_[rank]); }

  template <typename Visit>
  void for_each_owner(const Box& box, Visit&& visit) const {
    for (size_t from = 0; from < owned_.size(); ++from)
      if (owned_[from] && meets(*owned_[from], box)) visit(from, owned_[from]->intersect(box));
  }

  // Whether all members get the same boxes, from members.
  bool all_get(const std::vector<Movement::Part>& gets, const std::vector<int>& members) const {
    const auto inside = [&](const Movement::Part& part) {
      return std::ranges::binary_search(members, part.peer);
    };
    if (!std::ranges::all_of(gets, inside)) return false;
    const bool one = gets.size() == 1;
    // Who has all of the box gets it from itself alone.
    for (int member : members)
      if (stays(static_cast<size_t>(member)) && !(one && gets[0].peer == member)) return false;
    if (!stays(rank_)) return true;
    bool others = false;
    for_each_owner(*needed_[rank_], [&](size_t from, const Box&) { others |= from != rank_; });
    return !others;
  }

  bool give_to_others(const std::vector<int>& members) const {
    std::vector<const Box*> own;
    Box all;
    for (int member : members) {
      const auto& box = owned_[static_cast<size_t>(member)];
      if (!box) continue;
      all = own.empty() ? *box : all.hull(*box);
      own.push_back(&*box);
    }
    if (own.empty()) return false;
    for (size_t to = 0; to < needed_.size(); ++to) {
      if (!needed_[to] || !meets(all, *needed_[to]) || stays(to)) continue;
      if (needed_[to] == needed_[rank_]) continue;  // a member
      if (std::ranges::any_of(own, [&](const Box* box) { return meets(*box, *needed_[to]); })) return true;
    }
    return false;
  }

  const Layout &owned_, &needed_;
  const size_t rank_;
};

}  // namespace

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
  const CopyOfRank copy(owned, needed, rank);
  const std::vector<Movement::Part> gets = copy.gets();
  for (const Movement::Part& part : gets) {
    if (part.peer == rank) movement.local = part.box;
    if (part.peer != rank) movement.receives.push_back(part);
  }
  movement.sends = copy.sends();
  if (std::optional<RingGroup> ring = copy.ring(gets)) {
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
