#include "tests/cost/naive_volumes.h"

#include <algorithm>

#include "cortado/base/element_type.h"
#include "cortado/base/error.h"
#include "cortado/parallel/collectives.h"

namespace cortado::testing {
namespace {

constexpr double rounding = 1e-12;  // of what is sent: means over readers times their number

// Arrays of a block, each over ranks. After them, two for each mate: what the rank receives from it, and
// what it sends to it.
enum : size_t { own, senders, sent, first_mate };

double common(const Range& a, const Range& b) {
  return static_cast<double>(std::max<int64_t>(0, std::min(a.end, b.end) - std::max(a.begin, b.begin)));
}

int number_of(std::vector<GridLayout::AxisPtr>& axes, const GridLayout::AxisPtr& axis) {
  auto found = std::ranges::find_if(axes, [&](const GridLayout::AxisPtr& other) {
    return axis == other || (axis->hash == other->hash && *axis == *other);
  });
  if (found == axes.end()) found = axes.insert(axes.end(), axis);
  return static_cast<int>(found - axes.begin());
}

bool hold_the_same(const GridLayout& a, const GridLayout& b) {
  if (a.holders() != b.holders()) return false;
  for (int rank = 0; rank < a.ranks(); ++rank)
    if (a.holds(rank) != b.holds(rank)) return false;
  return true;
}

// Elements of owned by needed ranges.
std::vector<double> common_of(const GridLayout::Axis& owned, const GridLayout::Axis& needed) {
  std::vector<double> table;
  for (const Range& a : owned.ranges)
    for (const Range& b : needed.ranges) table.push_back(common(a, b));
  return table;
}

}  // namespace

NaiveVolumes::NaiveVolumes(const std::vector<GridLayout>& owned, const std::vector<GridLayout>& needed,
                           const std::vector<int>& node_of, ElementType type)
    : element_bytes_(static_cast<double>(size_of(type))),
      ranks_(static_cast<size_t>(owned.at(0).ranks())),
      owned_(side_of(owned)),
      needed_(side_of(needed)) {
  set_nodes(node_of);
  arrays_ = first_mate + 2 * mates_.size();
  const size_t size = arrays_ * ranks_, axes = std::min(owned_.axes.size(), needed_.axes.size());
  auto fill_blocks = [&](const auto& from, const auto& to, auto&& fill_one) {
    std::vector<double>& blocks = blocks_.emplace_back(from.size() * to.size() * size);
    double* next = blocks.data();
    for (const auto& one : from)
      for (const auto& other : to) fill_one(one, other, next), next += size;
  };
  fill_blocks(owned_.holders, needed_.holders,
              [&](const GridLayout& a, const GridLayout& b, double* block) { fill_holders(a, b, block); });
  for (size_t a = 0; a < axes; ++a) {
    fill_blocks(owned_.axes[a], needed_.axes[a],
                [&](const GridLayout::AxisPtr& x, const GridLayout::AxisPtr& y, double* block) {
                  fill(*x, *y, block);
                });
  }
  for (const GridLayout& layout : needed) {
    std::vector<double>& elements = elements_.emplace_back(ranks_);
    for (size_t rank = 0; rank < ranks_; ++rank) {
      const int r = static_cast<int>(rank);
      if (layout.holds(r)) elements[rank] = static_cast<double>(layout.elements(r));
    }
    rings_.push_back(rings_of(layout));
    order_.push_back(order_.size());
  }
  std::ranges::stable_sort(order_, [&](size_t a, size_t b) { return needed_.kinds[a] < needed_.kinds[b]; });
}

NaiveVolumes::Side NaiveVolumes::side_of(const std::vector<GridLayout>& layouts) {
  Side side;
  size_t axes = 0;  // a layout that nobody holds has none
  for (const GridLayout& layout : layouts) axes = std::max(axes, layout.axes().size());
  side.axes.resize(axes);
  for (const GridLayout& layout : layouts) {
    auto known = std::ranges::find_if(side.holders,
                                      [&](const GridLayout& other) { return hold_the_same(layout, other); });
    if (known == side.holders.end()) known = side.holders.insert(known, layout);
    std::vector<int>& kinds = side.kinds.emplace_back(1 + axes);
    kinds[0] = static_cast<int>(known - side.holders.begin());
    for (size_t a = 0; a < layout.axes().size(); ++a)
      kinds[1 + a] = number_of(side.axes[a], layout.axes()[a]);
  }
  return side;
}

NaiveVolumes::Rings NaiveVolumes::rings_of(const GridLayout& needed) {
  Rings rings{.members = 1, .next = std::vector<int>(static_cast<size_t>(needed.ranks()), -1)};
  if (needed.holders() == 0) return rings;
  for (const std::vector<int>& ring : needed.replicas()) {
    rings.members = static_cast<int>(ring.size());
    for (size_t i = 0; i < ring.size(); ++i)
      rings.next[static_cast<size_t>(ring[i])] = ring[(i + 1) % ring.size()];
  }
  return rings;
}

void NaiveVolumes::set_nodes(const std::vector<int>& node_of) {
  for (size_t rank = 0; rank < ranks_; ++rank)
    node_of_.push_back(node_of.empty() ? 0 : static_cast<size_t>(node_of[rank] - node_of.front()));
  if (node_of.empty() || node_of.front() == node_of.back()) return;
  ensure(std::ranges::is_sorted(node_of), "the devices of a node are consecutive");
  for (size_t rank = 0; rank < ranks_; ++rank)
    if (rank == 0 || node_of[rank] != node_of[rank - 1]) node_begin_.push_back(rank);
  node_begin_.push_back(ranks_);
  for (size_t node = 0; node + 1 < node_begin_.size(); ++node) {
    const size_t begin = node_begin_[node], size = node_begin_[node + 1] - begin;
    for (size_t step = 1; step < size; ++step) {
      if (mates_.size() < step) mates_.emplace_back(ranks_, -1);
      for (size_t i = 0; i < size; ++i)
        mates_[step - 1][begin + i] = static_cast<int>(begin + (i + step) % size);
    }
  }
}

void NaiveVolumes::fill(const GridLayout::Axis& owned, const GridLayout::Axis& needed, double* block) const {
  const std::vector<double> table = common_of(owned, needed);
  const size_t columns = needed.ranges.size();
  std::vector<double> meet(columns), mean(owned.ranges.size());
  for (size_t i = 0; i < owned.ranges.size(); ++i) {
    for (size_t j = 0; j < columns; ++j) {
      meet[j] += table[i * columns + j] > 0;
      mean[i] += needed.share[j] * table[i * columns + j];
    }
  }
  auto shared = [&](size_t owner, size_t reader) {
    return table[static_cast<size_t>(owned.of_rank[owner]) * columns +
                 static_cast<size_t>(needed.of_rank[reader])];
  };
  for (size_t rank = 0; rank < ranks_; ++rank) {
    block[own * ranks_ + rank] = shared(rank, rank);
    block[senders * ranks_ + rank] = meet[static_cast<size_t>(needed.of_rank[rank])];
    block[sent * ranks_ + rank] = mean[static_cast<size_t>(owned.of_rank[rank])];
  }
  for (size_t m = 0; m < mates_.size(); ++m) {
    double *from = block + (first_mate + 2 * m) * ranks_, *to = from + ranks_;
    for (size_t rank = 0; rank < ranks_; ++rank) {
      if (mates_[m][rank] < 0) continue;
      from[rank] = shared(static_cast<size_t>(mates_[m][rank]), rank);
      to[rank] = shared(rank, static_cast<size_t>(mates_[m][rank]));
    }
  }
}

// Writes 1 for each rank that takes part. What a rank sends is that times the number of readers, for the axes
// hold means over them.
void NaiveVolumes::fill_holders(const GridLayout& owned, const GridLayout& needed, double* block) const {
  for (size_t rank = 0; rank < ranks_; ++rank) {
    const int r = static_cast<int>(rank);
    block[own * ranks_ + rank] = owned.holds(r) && needed.holds(r);
    block[senders * ranks_ + rank] = needed.holds(r);
    block[sent * ranks_ + rank] = owned.holds(r) ? needed.holders() : 0;
    for (size_t m = 0; m < mates_.size(); ++m) {
      const int mate = mates_[m][rank];
      double* from = block + (first_mate + 2 * m) * ranks_;
      from[rank] = mate >= 0 && needed.holds(r) && owned.holds(mate);
      from[ranks_ + rank] = mate >= 0 && owned.holds(r) && needed.holds(mate);
    }
  }
}

NaiveVolumes::Room NaiveVolumes::room() const {
  // One more, for four sums.
  const std::vector<double> product(std::max<size_t>(arrays_, 4) * ranks_);
  return {std::vector<std::vector<double>>(blocks_.size() + 1, product)};
}

// Returns the block of axis - 1; for axis 0 that of the holders.
const double* NaiveVolumes::block(size_t axis, int from_kind, int to_kind) const {
  const size_t columns = axis == 0 ? needed_.holders.size() : needed_.axes[axis - 1].size();
  return blocks_[axis].data() +
         (static_cast<size_t>(from_kind) * columns + static_cast<size_t>(to_kind)) * arrays_ * ranks_;
}

std::vector<ExchangeVolume> NaiveVolumes::row(size_t owned, Room& room) const {
  const size_t size = arrays_ * ranks_, factors = blocks_.size();
  const std::vector<int>& from = owned_.kinds[owned];
  std::vector<ExchangeVolume> volumes(order_.size());
  const std::vector<int>* before = nullptr;
  for (size_t needed : order_) {
    const std::vector<int>& to = needed_.kinds[needed];
    size_t same = 0;
    while (before && same < factors && to[same] == (*before)[same]) ++same;
    before = &to;
    for (size_t axis = same; axis < factors; ++axis) {
      const double* factor = block(axis, from[axis], to[axis]);
      double* product = room.products[axis].data();
      if (axis == 0) {
        std::copy_n(factor, size, product);
        continue;
      }
      const double* shared = room.products[axis - 1].data();
      for (size_t i = 0; i < size; ++i) product[i] = shared[i] * factor[i];
    }
    double* product = room.products[factors - 1].data();
    const double* elements = elements_[needed].data();
    volumes[needed] = goes_round(needed, product) ? of_rings(needed, product, room)
                      : node_begin_.empty()       ? of_one_node(elements, product)
                                                  : of_nodes(elements, product, room);
  }
  return volumes;
}

// Whether every rank is in a ring (ring_group in parallel/collectives.h): nobody sends to other ranks than
// those that need the same box as it does itself. tests/cost compares the two.
bool NaiveVolumes::goes_round(size_t needed, const double* product) const {
  const double members = rings_[needed].members;
  if (members < 2) return false;
  const double *kept = product + own * ranks_, *out = product + sent * ranks_,
               *elements = elements_[needed].data();
  double beyond = 0,
         small = 0;  // what is sent elsewhere; ranks that have all of a tensor too small for a ring
#pragma omp simd reduction(max : beyond, small)
  for (size_t rank = 0; rank < ranks_; ++rank) {
    beyond = std::max(beyond, out[rank] * (1 - rounding) - members * kept[rank]);
    const bool all = kept[rank] > 0 && kept[rank] == elements[rank];
    small = std::max(small, all && elements[rank] < smallest_broadcast ? 1.0 : 0.0);
  }
  return beyond < 0.5 && small == 0;
}

ExchangeVolume NaiveVolumes::of_rings(size_t needed, const double* product, Room& room) const {
  const double *kept = product + own * ranks_, *elements = elements_[needed].data();
  const Rings& rings = rings_[needed];
  double *into = room.products.back().data(), *out_of = into + ranks_, *within = out_of + ranks_;  // by node
  std::fill_n(into, 3 * ranks_, 0.0);
  double total = 0, inside = 0, across = 0;
  for (size_t rank = 0; rank < ranks_; ++rank) {
    if (rings.next[rank] < 0) continue;
    const auto next = static_cast<size_t>(rings.next[rank]);
    const double moved = elements[rank] - kept[next];
    total += elements[rank] - kept[rank];
    if (node_of_[rank] == node_of_[next]) {
      inside = std::max(inside, moved);
      within[node_of_[rank]] += moved;
    } else {
      across = std::max(across, moved);
      out_of[node_of_[rank]] += moved;
      into[node_of_[next]] += moved;
    }
  }
  const double across_node =
      std::max(*std::max_element(into, into + ranks_), *std::max_element(out_of, out_of + ranks_));
  return {.inside = inside * element_bytes_,
          .across = across * element_bytes_,
          .node_inside = *std::max_element(within, within + ranks_) * element_bytes_,
          .node_across = across_node * element_bytes_,
          .messages = rings.members - 1,
          .total = {static_cast<int64_t>(total * element_bytes_)}};
}

ExchangeVolume NaiveVolumes::of_one_node(const double* elements, const double* product) const {
  const double *kept = product + own * ranks_, *peers = product + senders * ranks_,
               *out = product + sent * ranks_;
  double most_senders = 0, most = 0, total = 0;
#pragma omp simd reduction(max : most_senders, most) reduction(+ : total)
  for (size_t rank = 0; rank < ranks_; ++rank) {
    const double moved = elements[rank] - kept[rank];
    const double others = moved > 0 ? peers[rank] - (kept[rank] > 0 ? 1.0 : 0.0) : 0.0;
    most_senders = std::max(most_senders, others);
    most = std::max(most, std::max(moved, out[rank] - kept[rank]));
    total += moved;
  }
  return {.inside = most * element_bytes_,
          .across = 0,
          .node_inside = total * element_bytes_,
          .node_across = 0,
          .messages = static_cast<int>(most_senders),
          .total = {static_cast<int64_t>(total * element_bytes_)}};
}

ExchangeVolume NaiveVolumes::of_nodes(const double* elements, double* product, Room& room) const {
  // What goes to and fro between mates, summed over them.
  double *in = room.products.back().data(), *out = in + ranks_;
  std::fill_n(in, 2 * ranks_, 0.0);
  for (size_t m = 0; m < mates_.size(); ++m) {
    const double* more = product + (first_mate + 2 * m) * ranks_;
    for (size_t i = 0; i < 2 * ranks_; ++i) in[i] += more[i];
  }
  const double *kept = product + own * ranks_, *peers = product + senders * ranks_,
               *all_out = product + sent * ranks_;
  double *far_in = out + ranks_, *far_out = far_in + ranks_;
  double most_senders = 0, most_inside = 0, most_across = 0, total = 0;
#pragma omp simd reduction(max : most_senders, most_inside, most_across) reduction(+ : total)
  for (size_t rank = 0; rank < ranks_; ++rank) {
    const double moved = elements[rank] - kept[rank];
    const double others = moved > 0 ? peers[rank] - (kept[rank] > 0 ? 1.0 : 0.0) : 0.0;
    far_in[rank] = moved - in[rank];
    far_out[rank] = all_out[rank] - kept[rank] - out[rank];
    most_senders = std::max(most_senders, others);
    most_inside = std::max(most_inside, std::max(in[rank], out[rank]));
    most_across = std::max(most_across, std::max(far_in[rank], far_out[rank]));
    total += moved;
  }
  double node_inside = 0, node_across = 0;
  for (size_t node = 0; node + 1 < node_begin_.size(); ++node) {
    double into = 0, out_of = 0, within = 0;
    for (size_t rank = node_begin_[node]; rank < node_begin_[node + 1]; ++rank) {
      into += far_in[rank];
      out_of += far_out[rank];
      within += in[rank];
    }
    node_inside = std::max(node_inside, within);
    node_across = std::max(node_across, std::max(into, out_of));
  }
  return {.inside = most_inside * element_bytes_,
          .across = most_across * element_bytes_,
          .node_inside = node_inside * element_bytes_,
          .node_across = node_across * element_bytes_,
          .messages = static_cast<int>(most_senders),
          .total = {static_cast<int64_t>(total * element_bytes_)}};
}

}  // namespace cortado::testing
