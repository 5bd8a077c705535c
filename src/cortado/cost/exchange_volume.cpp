#include "cortado/cost/exchange_volume.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>

#include "cortado/base/element_type.h"
#include "cortado/base/error.h"

namespace cortado {
namespace {

constexpr uint32_t unseen = std::numeric_limits<uint32_t>::max();

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

// The numbers of lists of ranges, with their shares: of equal ones the same.
std::vector<size_t> lists_of(const std::vector<GridLayout::AxisPtr>& axes) {
  std::vector<size_t> lists;
  for (size_t a = 0; a < axes.size(); ++a) {
    size_t same = 0;
    while (same < a && (axes[same]->ranges != axes[a]->ranges || axes[same]->share != axes[a]->share)) ++same;
    lists.push_back(same);
  }
  return lists;
}

void mix_hash(uint64_t& hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL + (hash >> 29);
}

// Makes room for so many values.
void grow(std::pmr::vector<double>& values, size_t size) {
  if (values.size() < size) values.resize(size);
}

bool hold_the_same(const GridLayout& a, const GridLayout& b) {
  if (a.holders() != b.holders()) return false;
  if (a.first_ranks_hold() && b.first_ranks_hold()) return true;
  for (int rank = 0; rank < a.ranks(); ++rank)
    if (a.holds(rank) != b.holds(rank)) return false;
  return true;
}

}  // namespace

ExchangeVolumes::ExchangeVolumes(const std::vector<GridLayout>& owned, const std::vector<GridLayout>& needed,
                                 const std::vector<int>& node_of, ElementType type)
    : element_bytes_(static_cast<double>(size_of(type))),
      ranks_(static_cast<size_t>(owned.at(0).ranks())),
      owned_(side_of(owned)),
      needed_(side_of(needed)) {
  set_units(node_of);
  divisions_ = Divisions(units());
  one_ = {.division = 0, .count = 1, .values = std::pmr::vector<double>(arrays_ * width_, 1.0)};
  std::vector<Classes>& holders = blocks_.emplace_back();
  for (const GridLayout& a : owned_.holders)
    for (const GridLayout& b : needed_.holders) holders.push_back(classes_of_holders(a, b));
  const size_t axes = std::min(owned_.axes.size(), needed_.axes.size());
  for (size_t axis = 0; axis < axes; ++axis) add_axis(axis);
  for (const GridLayout& layout : needed) {
    rings_.push_back(rings_of(layout));
    order_.push_back(order_.size());
  }
  std::ranges::stable_sort(order_, [&](size_t a, size_t b) { return needed_.kinds[a] < needed_.kinds[b]; });
}

ExchangeVolumes::Side ExchangeVolumes::side_of(const std::vector<GridLayout>& layouts) {
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

ExchangeVolumes::Rings ExchangeVolumes::rings_of(const GridLayout& needed) {
  Rings rings{.members = 1, .next = std::vector<int>(static_cast<size_t>(needed.ranks()), -1)};
  if (needed.holders() == 0) return rings;
  rings.members = needed.holders() / static_cast<int>(needed.places());
  std::vector<int> first(needed.places(), -1), last = first;  // of the ranks that hold a box
  for (int rank = 0; rank < needed.ranks(); ++rank) {
    if (!needed.holds(rank)) continue;
    const size_t place = needed.place(rank);
    if (first[place] < 0) first[place] = last[place] = rank;
    rings.next[static_cast<size_t>(last[place])] = rank;
    rings.next[static_cast<size_t>(rank)] = first[place];
    last[place] = rank;
  }
  return rings;
}

void ExchangeVolumes::set_units(const std::vector<int>& node_of) {
  one_node_ = node_of.empty() || node_of.front() == node_of.back();
  if (!one_node_) ensure(std::ranges::is_sorted(node_of), "the devices of a node are consecutive");
  for (size_t rank = 0; rank < ranks_; ++rank) {
    if (one_node_ || rank == 0 || node_of[rank] != node_of[rank - 1]) unit_begin_.push_back(rank);
    unit_of_.push_back(unit_begin_.size() - 1);
  }
  unit_begin_.push_back(ranks_);
  for (size_t unit = 0; unit + 1 < unit_begin_.size(); ++unit)
    width_ = std::max(width_, unit_begin_[unit + 1] - unit_begin_[unit]);
  arrays_ = first_mate + 2 * (width_ - 1);
}

void ExchangeVolumes::PairNumbers::clear(size_t pairs) {
  if (numbers_.size() < pairs) numbers_.resize(pairs), times_.resize(pairs);
  ++time_;
}

uint32_t& ExchangeVolumes::PairNumbers::operator[](size_t pair) {
  if (times_[pair] != time_) times_[pair] = time_, numbers_[pair] = unseen;
  return numbers_[pair];
}

ExchangeVolumes::Patterns ExchangeVolumes::patterns_of(const std::vector<int>& of_rank) const {
  Patterns patterns;
  patterns.of_unit.reserve(units());
  const auto ranks_of = [&](size_t unit) {
    return std::span(of_rank).subspan(unit_begin_[unit], unit_begin_[unit + 1] - unit_begin_[unit]);
  };
  std::unordered_map<uint64_t, size_t> first;  // by hash: the first unit that has the pattern
  for (size_t unit = 0; unit < units(); ++unit) {
    uint64_t hash = 0;
    for (int each : ranks_of(unit)) mix_hash(hash, static_cast<uint64_t>(each));
    auto [known, is_new] = first.try_emplace(hash, unit);
    while (!is_new && !std::ranges::equal(ranks_of(known->second), ranks_of(unit)))
      std::tie(known, is_new) = first.try_emplace(++hash, unit);
    patterns.of_unit.push_back(is_new ? static_cast<uint32_t>(patterns.count++)
                                      : patterns.of_unit[known->second]);
  }
  return patterns;
}

std::vector<ExchangeVolumes::Patterns> ExchangeVolumes::patterns_of(
    const std::vector<GridLayout::AxisPtr>& axes) const {
  std::vector<Patterns> patterns;
  for (const GridLayout::AxisPtr& axis : axes) patterns.push_back(patterns_of(axis->of_rank));
  return patterns;
}

size_t ExchangeVolumes::Divisions::number_of(std::span<const uint32_t> of_unit) {
  uint64_t hash = 0;
  for (uint32_t each : of_unit) mix_hash(hash, each);
  const auto [begin, end] = numbers_.equal_range(hash);
  for (auto known = begin; known != end; ++known)
    if (std::ranges::equal(list_[known->second].of_unit, of_unit)) return known->second;
  numbers_.emplace(hash, list_.size());
  Division& division = list_.emplace_back();
  division.of_unit.assign(of_unit.begin(), of_unit.end());
  for (uint32_t number : of_unit) {
    if (number == division.counts.size()) division.counts.push_back(0);
    ++division.counts[number];
  }
  return list_.size() - 1;
}

// Puts units into classes by the values that fill(unit, values) writes over zeros, the same for units of the
// same two patterns.
template <typename Fill>
ExchangeVolumes::Classes ExchangeVolumes::classes_by(const Patterns& owned, const Patterns& needed,
                                                     ClassRoom& room, Fill&& fill) {
  const size_t size = arrays_ * width_;
  size_t count = 0;
  room.of_unit.resize(units());
  room.values.resize(size);
  room.distinct.clear();
  room.hashes.clear();
  room.met.clear(owned.count * needed.count);
  for (size_t unit = 0; unit < units(); ++unit) {
    uint32_t& number = room.met[owned.of_unit[unit] * needed.count + needed.of_unit[unit]];
    if (number == unseen) {
      std::ranges::fill(room.values, 0.0);
      fill(unit, room.values.data());
      uint64_t hash = 0;
      for (double value : room.values) mix_hash(hash, std::bit_cast<uint64_t>(value));
      number = 0;
      while (number < count &&
             (room.hashes[number] != hash ||
              !std::ranges::equal(room.values, std::span(room.distinct).subspan(number * size, size))))
        ++number;
      if (number == count) {
        ++count;
        room.hashes.push_back(hash);
        room.distinct.insert(room.distinct.end(), room.values.begin(), room.values.end());
      }
    }
    room.of_unit[unit] = number;
  }
  return {.division = divisions_.number_of(room.of_unit),
          .count = count,
          .values = {room.distinct.begin(), room.distinct.end(), memory_.get()}};
}

void ExchangeVolumes::add_axis(size_t axis) {
  const auto &from = owned_.axes[axis], &to = needed_.axes[axis];
  const std::vector<Patterns> of_owned = patterns_of(from), of_needed = patterns_of(to);
  const std::vector<size_t> from_lists = lists_of(from), to_lists = lists_of(to);
  std::map<std::pair<size_t, size_t>, Shared> known;
  ClassRoom room;
  std::vector<Classes>& blocks = blocks_.emplace_back();
  blocks.reserve(from.size() * to.size());
  for (size_t a = 0; a < from.size(); ++a) {
    for (size_t b = 0; b < to.size(); ++b) {
      const auto [shared, is_new] = known.try_emplace({from_lists[a], to_lists[b]});
      if (is_new) shared->second = shared_of(*from[a], *to[b]);
      blocks.push_back(classes_by(of_owned[a], of_needed[b], room, [&](size_t unit, double* values) {
        fill(*from[a], *to[b], shared->second, unit, values);
      }));
    }
  }
}

ExchangeVolumes::Shared ExchangeVolumes::shared_of(const GridLayout::Axis& owned,
                                                   const GridLayout::Axis& needed) {
  Shared shared{std::vector<double>(needed.ranges.size()), std::vector<double>(owned.ranges.size())};
  for (size_t i = 0; i < owned.ranges.size(); ++i) {
    for (size_t j = 0; j < needed.ranges.size(); ++j) {
      const double both = common(owned.ranges[i], needed.ranges[j]);
      shared.meet[j] += both > 0;
      shared.mean[i] += needed.share[j] * both;
    }
  }
  return shared;
}

void ExchangeVolumes::fill(const GridLayout::Axis& owned, const GridLayout::Axis& needed,
                           const Shared& shared, size_t unit, double* values) const {
  const size_t first = unit_begin_[unit], ranks = unit_begin_[unit + 1] - first;
  const auto has = [&](size_t i) { return static_cast<size_t>(owned.of_rank[first + i]); };
  const auto needs = [&](size_t i) { return static_cast<size_t>(needed.of_rank[first + i]); };
  const auto both = [&](size_t owner, size_t reader) {
    return common(owned.ranges[has(owner)], needed.ranges[needs(reader)]);
  };
  for (size_t i = 0; i < ranks; ++i) {
    values[own * width_ + i] = both(i, i);
    values[senders * width_ + i] = shared.meet[needs(i)];
    values[sent * width_ + i] = shared.mean[has(i)];
    values[whole * width_ + i] = static_cast<double>(needed.ranges[needs(i)].size());
    for (size_t step = 1; step < ranks; ++step) {
      const size_t mate = (i + step) % ranks, array = first_mate + 2 * (step - 1);
      values[array * width_ + i] = both(mate, i);
      values[(array + 1) * width_ + i] = both(i, mate);
    }
  }
}

// Has 1 for each rank that takes part. What a rank sends is that times the number of readers, for the axes
// hold means over them.
ExchangeVolumes::Classes ExchangeVolumes::classes_of_holders(const GridLayout& owned,
                                                             const GridLayout& needed) {
  const auto held = [&](const GridLayout& layout) {
    std::vector<int> of_rank;
    of_rank.reserve(ranks_);
    for (size_t rank = 0; rank < ranks_; ++rank) of_rank.push_back(layout.holds(static_cast<int>(rank)));
    return of_rank;
  };
  const std::vector<int> owners = held(owned), readers = held(needed);
  ClassRoom room;
  return classes_by(patterns_of(owners), patterns_of(readers), room, [&](size_t unit, double* values) {
    const size_t first = unit_begin_[unit], ranks = unit_begin_[unit + 1] - first;
    const int *has = owners.data() + first, *needs = readers.data() + first;
    for (size_t i = 0; i < ranks; ++i) {
      values[own * width_ + i] = has[i] * needs[i];
      values[senders * width_ + i] = needs[i];
      values[sent * width_ + i] = has[i] * needed.holders();
      values[whole * width_ + i] = needs[i];
      for (size_t step = 1; step < ranks; ++step) {
        const size_t mate = (i + step) % ranks, array = first_mate + 2 * (step - 1);
        values[array * width_ + i] = needs[i] * has[mate];
        values[(array + 1) * width_ + i] = has[i] * needs[mate];
      }
    }
  });
}

ExchangeVolumes::Room ExchangeVolumes::room(size_t remembered) const {
  Room room(divisions_, remembered);
  room.products_.resize(blocks_.size());
  for (std::vector<double>* sums : {&room.into_, &room.out_of_, &room.within_}) sums->resize(units());
  return room;
}

// Returns the block of axis - 1; for axis 0 that of the holders.
const ExchangeVolumes::Classes& ExchangeVolumes::block(size_t axis, int from_kind, int to_kind) const {
  const size_t columns = axis == 0 ? needed_.holders.size() : needed_.axes[axis - 1].size();
  return blocks_[axis][static_cast<size_t>(from_kind) * columns + static_cast<size_t>(to_kind)];
}

const ExchangeVolumes::Meeting& ExchangeVolumes::meeting(const Classes& before, const Classes& by,
                                                         Room& room) const {
  const auto [known, is_new] = room.meetings_.try_emplace(uint64_t{before.division} << 32 | by.division);
  Meeting& meeting = known->second;
  if (!is_new) return meeting;
  const std::vector<uint32_t>&of_before = room.divisions_[before.division].of_unit,
        &of_by = room.divisions_[by.division].of_unit;
  room.met_.clear(before.count * by.count);
  std::vector<uint32_t> of_unit(units());
  for (size_t unit = 0; unit < units(); ++unit) {
    const uint32_t a = of_before[unit], b = of_by[unit];
    uint32_t& number = room.met_[a * by.count + b];
    if (number == unseen) {
      number = static_cast<uint32_t>(meeting.classes.size());
      meeting.classes.emplace_back(a, b);
    }
    of_unit[unit] = number;
  }
  meeting.division = room.divisions_.number_of(of_unit);
  return meeting;
}

// Classes of units that are in the same class by both.
ExchangeVolumes::Product ExchangeVolumes::product(const Classes& before, const Classes& by,
                                                  Room& room) const {
  Product product{.left = before.values.data(),
                  .right = by.values.data(),
                  .meeting = nullptr,
                  .left_step = 0,
                  .right_step = 0,
                  .size = arrays_ * width_};
  if (by.count == 1 || before.count == 1) {
    const Classes& more = by.count == 1 ? before : by;
    product.division = more.division;
    product.count = more.count;
    (by.count == 1 ? product.left_step : product.right_step) = product.size;
    return product;
  }
  product.meeting = &meeting(before, by, room);
  product.division = product.meeting->division;
  product.count = product.meeting->classes.size();
  return product;
}

void ExchangeVolumes::multiply(const Product& product, Classes& result) const {
  result.division = product.division;
  result.count = product.count;
  grow(result.values, product.count * product.size);
  for (size_t c = 0; c < product.count; ++c) {
    const double *left = product.left_of(c), *right = product.right_of(c);
    double* __restrict both = result.values.data() + c * product.size;
    for (size_t i = 0; i < product.size; ++i) both[i] = left[i] * right[i];
  }
}

// The product of all blocks to that of `axis`.
ExchangeVolumes::Product ExchangeVolumes::up_to(size_t axis, int from_kind, int to_kind, Room& room) const {
  return product(axis == 0 ? one_ : room.products_[axis - 1], block(axis, from_kind, to_kind), room);
}

std::vector<ExchangeVolume> ExchangeVolumes::row(size_t owned, Room& room) const {
  if (room.meetings_.size() * units() > room.remembered_) {
    room.meetings_.clear();
    room.divisions_ = divisions_;
  }
  const size_t last = blocks_.size() - 1;
  const std::vector<int>& from = owned_.kinds[owned];
  std::vector<ExchangeVolume> volumes(order_.size());
  const std::vector<int>* before = nullptr;
  for (size_t needed : order_) {
    const std::vector<int>& to = needed_.kinds[needed];
    size_t same = 0;
    while (before && same < last && to[same] == (*before)[same]) ++same;
    before = &to;
    for (size_t axis = same; axis < last; ++axis)
      multiply(up_to(axis, from[axis], to[axis], room), room.products_[axis]);
    const Product all = up_to(last, from[last], to[last], room);
    volumes[needed] = goes_round(needed, all) ? of_rings(needed, all, room)
                      : one_node_             ? of_one_node(all, room)
                                              : of_nodes(all, room);
  }
  return volumes;
}

ExchangeVolume exchange_volume(const GridLayout& owned, const GridLayout& needed,
                               const std::vector<int>& node_of, ElementType type) {
  const ExchangeVolumes volumes({owned}, {needed}, node_of, type);
  ExchangeVolumes::Room room = volumes.room();
  return volumes.row(0, room)[0];
}

}  // namespace cortado
