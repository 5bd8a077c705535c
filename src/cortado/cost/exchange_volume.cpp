#include "cortado/cost/exchange_volume.h"

#include <algorithm>

namespace cortado {
namespace {

constexpr double float_bytes = sizeof(float);

// Arrays of a block, each over ranks. Behind them, two for each mate: what the rank receives from it, and
// what it sends to it.
enum : size_t { own, senders, sent, first_mate };

double common(const Range& a, const Range& b) {
  return static_cast<double>(std::max<int64_t>(0, std::min(a.end, b.end) - std::max(a.begin, b.begin)));
}

template <typename Value>
int number_of(std::vector<Value>& values, const Value& value) {
  auto found = std::ranges::find(values, value);
  if (found == values.end()) found = values.insert(values.end(), value);
  return static_cast<int>(found - values.begin());
}

bool hold_alike(const GridLayout& a, const GridLayout& b) {
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

ExchangeVolumes::ExchangeVolumes(const std::vector<GridLayout>& owned, const std::vector<GridLayout>& needed,
                                 const std::vector<int>& node_of)
    : ranks_(static_cast<size_t>(owned.at(0).ranks())), owned_(side_of(owned)), needed_(side_of(needed)) {
  set_nodes(node_of);
  arrays_ = first_mate + 2 * mates_.size();
  const size_t block = arrays_ * ranks_, axes = std::min(owned_.axes.size(), needed_.axes.size());
  for (size_t a = 0; a < axes; ++a) {
    std::vector<double>& blocks = blocks_.emplace_back();
    blocks.resize(owned_.axes[a].size() * needed_.axes[a].size() * block);
    double* next = blocks.data();
    for (const GridLayout::Axis& from : owned_.axes[a])
      for (const GridLayout::Axis& to : needed_.axes[a]) fill(from, to, next), next += block;
  }
  std::vector<double>& blocks = blocks_.emplace_back();
  blocks.resize(owned_.holders.size() * needed_.holders.size() * block);
  double* next = blocks.data();
  for (const GridLayout& from : owned_.holders)
    for (const GridLayout& to : needed_.holders) fill_holders(from, to, next), next += block;
  for (const GridLayout& layout : needed) {
    std::vector<double>& elements = elements_.emplace_back(ranks_);
    for (size_t rank = 0; rank < ranks_; ++rank) {
      const int r = static_cast<int>(rank);
      if (layout.holds(r)) elements[rank] = static_cast<double>(layout.elements(r));
    }
  }
}

ExchangeVolumes::Side ExchangeVolumes::side_of(const std::vector<GridLayout>& layouts) {
  Side side;
  size_t axes = 0;  // a layout that nobody holds has none
  for (const GridLayout& layout : layouts) axes = std::max(axes, layout.axes().size());
  side.axes.resize(axes);
  for (const GridLayout& layout : layouts) {
    std::vector<int>& kinds = side.kinds.emplace_back(axes);
    for (size_t a = 0; a < layout.axes().size(); ++a) kinds[a] = number_of(side.axes[a], layout.axes()[a]);
    auto known = std::ranges::find_if(side.holders,
                                      [&](const GridLayout& other) { return hold_alike(layout, other); });
    if (known == side.holders.end()) known = side.holders.insert(known, layout);
    kinds.push_back(static_cast<int>(known - side.holders.begin()));
  }
  return side;
}

void ExchangeVolumes::set_nodes(const std::vector<int>& node_of) {
  if (node_of.empty()) return;
  nodes_ = 1 + *std::ranges::max_element(node_of);
  if (nodes_ == 1) return;
  node_of_ = node_of;
  std::vector<std::vector<int>> members(static_cast<size_t>(nodes_));
  for (size_t rank = 0; rank < ranks_; ++rank)
    members[static_cast<size_t>(node_of[rank])].push_back(static_cast<int>(rank));
  for (const auto& node : members) {
    for (size_t step = 1; step < node.size(); ++step) {
      if (mates_.size() < step) mates_.emplace_back(ranks_, -1);
      for (size_t i = 0; i < node.size(); ++i)
        mates_[step - 1][static_cast<size_t>(node[i])] = node[(i + step) % node.size()];
    }
  }
}

void ExchangeVolumes::fill(const GridLayout::Axis& owned, const GridLayout::Axis& needed,
                           double* block) const {
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

// Who takes part: 1 where it does. What a rank sends is that times the number of readers, for the axes hold
// means over them.
void ExchangeVolumes::fill_holders(const GridLayout& owned, const GridLayout& needed, double* block) const {
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

ExchangeVolumes::Room ExchangeVolumes::room() const {
  const std::vector<double> per_node(static_cast<size_t>(nodes_));
  return {std::vector<double>(arrays_ * ranks_), per_node, per_node, per_node};
}

// The product of the axes' arrays.
void ExchangeVolumes::multiply(const std::vector<int>& from, const std::vector<int>& to,
                               double* product) const {
  const size_t size = arrays_ * ranks_, axes = blocks_.size() - 1;
  auto block = [&](size_t a, int from_kind, int to_kind, size_t columns) {
    return blocks_[a].data() +
           (static_cast<size_t>(from_kind) * columns + static_cast<size_t>(to_kind)) * size;
  };
  std::copy_n(block(axes, from.back(), to.back(), needed_.holders.size()), size, product);
  for (size_t a = 0; a < axes; ++a) {
    const double* factor = block(a, from[a], to[a], needed_.axes[a].size());
    for (size_t i = 0; i < size; ++i) product[i] *= factor[i];
  }
}

ExchangeVolume ExchangeVolumes::at(size_t owned, size_t needed, Room& room) const {
  multiply(owned_.kinds[owned], needed_.kinds[needed], room.product.data());
  return nodes_ == 1 ? of_one_node(elements_[needed], room.product.data())
                     : of_nodes(elements_[needed], room);
}

ExchangeVolume ExchangeVolumes::of_one_node(const std::vector<double>& elements,
                                            const double* product) const {
  double most_senders = 0, most = 0, total = 0;
  for (size_t rank = 0; rank < ranks_; ++rank) {
    const double kept = product[own * ranks_ + rank], moved = elements[rank] - kept;
    const double others = moved > 0 ? product[senders * ranks_ + rank] - (kept > 0 ? 1 : 0) : 0;
    most_senders = std::max(most_senders, others);
    most = std::max(most, std::max(moved, product[sent * ranks_ + rank] - kept));
    total += moved;
  }
  return {.inside = most * float_bytes,
          .across = 0,
          .node_inside = total * float_bytes,
          .node_across = 0,
          .messages = static_cast<int>(most_senders),
          .total = static_cast<int64_t>(total * float_bytes)};
}

ExchangeVolume ExchangeVolumes::of_nodes(const std::vector<double>& elements, Room& room) const {
  for (auto* sums : {&room.into, &room.out_of, &room.within}) std::ranges::fill(*sums, 0.0);
  const double* product = room.product.data();
  double most_senders = 0, most_inside = 0, most_across = 0, total = 0;
  for (size_t rank = 0; rank < ranks_; ++rank) {
    double in = 0, out = 0;  // from and to mates
    for (size_t m = 0; m < mates_.size(); ++m) {
      in += product[(first_mate + 2 * m) * ranks_ + rank];
      out += product[(first_mate + 2 * m + 1) * ranks_ + rank];
    }
    const double kept = product[own * ranks_ + rank], moved = elements[rank] - kept;
    const double others = moved > 0 ? product[senders * ranks_ + rank] - (kept > 0 ? 1 : 0) : 0;
    const double far_in = moved - in, far_out = product[sent * ranks_ + rank] - kept - out;
    const auto node = static_cast<size_t>(node_of_[rank]);
    most_senders = std::max(most_senders, others);
    most_inside = std::max(most_inside, std::max(in, out));
    most_across = std::max(most_across, std::max(far_in, far_out));
    room.into[node] += far_in;
    room.out_of[node] += far_out;
    room.within[node] += in;
    total += moved;
  }
  const double node_across =
      std::max(*std::ranges::max_element(room.into), *std::ranges::max_element(room.out_of));
  return {.inside = most_inside * float_bytes,
          .across = most_across * float_bytes,
          .node_inside = *std::ranges::max_element(room.within) * float_bytes,
          .node_across = node_across * float_bytes,
          .messages = static_cast<int>(most_senders),
          .total = static_cast<int64_t>(total * float_bytes)};
}

ExchangeVolume exchange_volume(const GridLayout& owned, const GridLayout& needed,
                               const std::vector<int>& node_of) {
  const ExchangeVolumes volumes({owned}, {needed}, node_of);
  ExchangeVolumes::Room room = volumes.room();
  return volumes.at(0, 0, room);
}

}  // namespace cortado
