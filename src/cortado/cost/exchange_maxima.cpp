// The maxima over devices and nodes of what an exchange moves, from its classes of equal nodes.
#include <algorithm>
#include <cstring>

#include "cortado/cost/exchange_volume.h"
#include "cortado/parallel/collectives.h"

namespace cortado {
namespace {

constexpr double rounding = 1e-12;  // of what is sent: means over readers times their number

// Values of so many ranks of a node, which the processor computes at once.
template <size_t ranks>
using Vector [[gnu::vector_size(ranks * sizeof(double))]] = double;

template <typename Ranks>
void raise(Ranks& most, const Ranks& values) {
  most = values > most ? values : most;
}

template <size_t ranks>
double largest(const Vector<ranks>& values) {
  double largest = values[0];
  for (size_t i = 1; i < ranks; ++i) largest = std::max(largest, values[i]);
  return largest;
}

}  // namespace

// Whether every rank is in a ring (ring_group in parallel/collectives.h): nobody sends to other ranks than
// those that need the same box as it does itself. tests/cost compares the two.
bool ExchangeVolumes::goes_round(size_t needed, const Product& all) const {
  const double members = rings_[needed].members;
  if (members < 2) return false;
  for (size_t c = 0; c < all.count; ++c) {
    const double *left = all.left_of(c), *right = all.right_of(c);
    const auto value = [&](size_t i) { return left[i] * right[i]; };
    for (size_t i = 0; i < width_; ++i) {
      const double kept = value(own * width_ + i), elements = value(whole * width_ + i);
      // What is sent elsewhere; and ranks that have all of a tensor too small for a ring.
      if (value(sent * width_ + i) * (1 - rounding) - members * kept >= 0.5) return false;
      if (kept > 0 && kept == elements && elements < smallest_broadcast) return false;
    }
  }
  return true;
}

ExchangeVolume ExchangeVolumes::of_rings(size_t needed, const Product& all, Room& room) const {
  const Rings& rings = rings_[needed];
  const std::vector<uint32_t>& of_unit = room.divisions_[all.division].of_unit;
  for (std::vector<double>* sums : {&room.into_, &room.out_of_, &room.within_}) std::ranges::fill(*sums, 0.0);
  const auto value = [&](size_t array, size_t rank, size_t unit) {
    const size_t of = of_unit[unit], index = array * width_ + rank - unit_begin_[unit];
    return all.left_of(of)[index] * all.right_of(of)[index];
  };
  double total = 0, inside = 0, across = 0;
  for (size_t rank = 0; rank < ranks_; ++rank) {
    if (rings.next[rank] < 0) continue;
    const auto next = static_cast<size_t>(rings.next[rank]);
    const size_t unit = unit_of_[rank], other = unit_of_[next];
    const double elements = value(whole, rank, unit), moved = elements - value(own, next, other);
    total += elements - value(own, rank, unit);
    if (one_node_ || unit == other) {
      inside = std::max(inside, moved);
      room.within_[one_node_ ? 0 : unit] += moved;
    } else {
      across = std::max(across, moved);
      room.out_of_[unit] += moved;
      room.into_[other] += moved;
    }
  }
  const double across_node = std::max(std::ranges::max(room.into_), std::ranges::max(room.out_of_));
  return {.inside = inside * element_bytes_,
          .across = across * element_bytes_,
          .node_inside = std::ranges::max(room.within_) * element_bytes_,
          .node_across = across_node * element_bytes_,
          .messages = rings.members - 1,
          .total = {static_cast<int64_t>(total * element_bytes_)}};
}

ExchangeVolume ExchangeVolumes::of_one_node(const Product& all, const Room& room) const {
  const std::vector<int>& counts = room.divisions_[all.division].counts;
  double most_senders = 0, most = 0, total = 0;
  for (size_t c = 0; c < all.count; ++c) {
    const double *left = all.left_of(c), *right = all.right_of(c);
    const auto value = [&](Array array) { return left[array] * right[array]; };
    const double kept = value(own), moved = value(whole) - kept;
    const double others = moved > 0 ? value(senders) - (kept > 0 ? 1.0 : 0.0) : 0.0;
    most_senders = std::max(most_senders, others);
    most = std::max(most, std::max(moved, value(sent) - kept));
    total += counts[c] * moved;
  }
  return {.inside = most * element_bytes_,
          .across = 0,
          .node_inside = total * element_bytes_,
          .node_across = 0,
          .messages = static_cast<int>(most_senders),
          .total = {static_cast<int64_t>(total * element_bytes_)}};
}

ExchangeVolume ExchangeVolumes::of_nodes(const Product& all, const Room& room) const {
  switch (width_) {  // numbers that the compiler knows make vectors of a node's ranks
    case 2:
      return of_nodes_of<2>(all, room);
    case 4:
      return of_nodes_of<4>(all, room);
    case 8:
      return of_nodes_of<8>(all, room);
    default:
      return of_nodes_of<0>(all, room);
  }
}

// `known`: ranks of the largest node; 0: as `width_` says.
template <size_t known>
ExchangeVolume ExchangeVolumes::of_nodes_of(const Product& all, const Room& room) const {
  constexpr size_t block = known > 0 ? known : 1;  // ranks at a time
  using Ranks = Vector<block>;
  const size_t width = known > 0 ? known : width_;
  Ranks most_senders{}, most_inside{}, most_across{};
  double total = 0, node_inside = 0, node_across = 0;
  const std::vector<int>& counts = room.divisions_[all.division].counts;
  for (size_t c = 0; c < all.count; ++c) {
    const double *left = all.left_of(c), *right = all.right_of(c);
    double into = 0, out_of = 0, within = 0, moves = 0;  // of the node
    for (size_t first = 0; first < width; first += block) {
      const auto read = [&](size_t array, Ranks& to) {
        Ranks factor;
        std::memcpy(&to, left + array * width + first, sizeof to);
        std::memcpy(&factor, right + array * width + first, sizeof factor);
        to *= factor;
      };
      Ranks in{}, out{}, next;  // in, out: what goes to and fro between mates
      for (size_t array = first_mate; array < arrays_; array += 2) {
        read(array, next);
        in += next;
        read(array + 1, next);
        out += next;
      }
      Ranks kept, moved, others, far_out;
      read(own, kept), read(whole, moved), read(senders, others), read(sent, far_out);
      moved -= kept;
      others -= kept > 0 ? Ranks{} + 1 : Ranks{};
      far_out -= kept;
      far_out -= out;
      const Ranks far_in = moved - in;
      raise(most_senders, moved > 0 ? others : Ranks{});
      raise(most_inside, in), raise(most_inside, out);
      raise(most_across, far_in), raise(most_across, far_out);
      for (size_t i = 0; i < block; ++i) {
        into += far_in[i];
        out_of += far_out[i];
        within += in[i];
        moves += moved[i];
      }
    }
    total += counts[c] * moves;
    node_inside = std::max(node_inside, within);
    node_across = std::max(node_across, std::max(into, out_of));
  }
  return {.inside = largest<block>(most_inside) * element_bytes_,
          .across = largest<block>(most_across) * element_bytes_,
          .node_inside = node_inside * element_bytes_,
          .node_across = node_across * element_bytes_,
          .messages = static_cast<int>(largest<block>(most_senders)),
          .total = {static_cast<int64_t>(total * element_bytes_)}};
}

}  // namespace cortado
