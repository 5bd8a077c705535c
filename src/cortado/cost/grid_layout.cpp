#include "cortado/cost/grid_layout.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace cortado {
namespace {

void mix(size_t& hash, int64_t value) {
  hash ^= static_cast<size_t>(value) + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
}

// The axis of a layout; `first`: the ranks that hold something are the first ones.
GridLayout::AxisPtr axis_of(const Layout& layout, int axis, int holders, bool first) {
  std::vector<Range> ranges;
  std::vector<int> of_rank(layout.size()), counts;
  for (size_t rank = 0; rank < layout.size(); ++rank) {
    if (!layout[rank]) continue;
    const Range range = (*layout[rank])[axis];
    const auto found = std::ranges::find(ranges, range);
    of_rank[rank] = static_cast<int>(found - ranges.begin());
    if (found == ranges.end()) ranges.push_back(range), counts.push_back(0);
    ++counts[static_cast<size_t>(of_rank[rank])];
  }
  for (size_t rank = 0; rank < layout.size(); ++rank) {
    if (!layout[rank]) of_rank[rank] = first ? of_rank[rank % static_cast<size_t>(holders)] : 0;
  }
  std::vector<double> share;
  for (int count : counts) share.push_back(static_cast<double>(count) / holders);
  return std::make_shared<const GridLayout::Axis>(std::move(ranges), std::move(share), std::move(of_rank));
}

}  // namespace

GridLayout::Axis::Axis(std::vector<Range> ranges_held, std::vector<double> shares, std::vector<int> of_ranks)
    : ranges(std::move(ranges_held)), share(std::move(shares)), of_rank(std::move(of_ranks)) {
  for (const Range& range : ranges) {
    most = std::max(most, range.size());
    mix(hash, range.begin), mix(hash, range.end);
  }
  for (size_t rank = 1; rank < of_rank.size(); rank *= 2) mix(hash, of_rank[rank]);
}

GridLayout::Content::Content(int ranks_of_all, int ranks_that_hold, std::vector<char> which, Axes of_tensor)
    : ranks(ranks_of_all), holders(ranks_that_hold), holds(std::move(which)), axes(std::move(of_tensor)) {
  mix(hash, holders);
  for (const AxisPtr& axis : axes) mix(hash, static_cast<int64_t>(axis->hash));
}

GridLayout::GridLayout(const Layout& layout) {
  std::vector<char> holds;
  int holders = 0, rank_of_tensor = 0, after_last = 0;
  for (const auto& box : layout) {
    holds.push_back(box.has_value());
    if (!box) continue;
    ++holders;
    after_last = static_cast<int>(holds.size());
    rank_of_tensor = box->rank();
  }
  const bool first = after_last == holders;
  if (first) holds.clear();
  Axes axes;
  for (int a = 0; a < rank_of_tensor; ++a) axes.push_back(axis_of(layout, a, holders, first));
  content_ = std::make_shared<const Content>(static_cast<int>(layout.size()), holders, std::move(holds),
                                             std::move(axes));
}

GridLayout::GridLayout(int ranks, int holders, Axes axes)
    : content_(std::make_shared<const Content>(ranks, holders, std::vector<char>(), std::move(axes))) {}

bool GridLayout::operator==(const GridLayout& other) const {
  if (content_ == other.content_) return true;
  return hash() == other.hash() && ranks() == other.ranks() && holders() == other.holders() &&
         content_->holds == other.content_->holds &&
         std::ranges::equal(axes(), other.axes(),
                            [](const AxisPtr& a, const AxisPtr& b) { return a == b || *a == *b; });
}

bool GridLayout::is_grid() const {
  std::map<std::vector<int>, int> counts;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (!holds(rank)) continue;
    std::vector<int> place;
    for (const AxisPtr& axis : axes()) place.push_back(axis->of_rank[static_cast<size_t>(rank)]);
    ++counts[place];
  }
  double combinations = 1;
  for (const AxisPtr& axis : axes()) combinations *= static_cast<double>(axis->ranges.size());
  if (holders() > 0 && static_cast<double>(counts.size()) != combinations) return false;
  return std::ranges::all_of(counts, [&](const auto& entry) {
    double expected = holders();
    for (size_t a = 0; a < axes().size(); ++a)
      expected *= axes()[a]->share[static_cast<size_t>(entry.first[a])];
    return std::abs(expected - entry.second) < 1e-6;
  });
}

Box GridLayout::box(int rank) const {
  Shape shape;
  for (size_t a = 0; a < axes().size(); ++a) shape.append(0);
  Box box = Box::whole(shape);
  for (size_t a = 0; a < axes().size(); ++a) box[static_cast<int>(a)] = range(rank, a);
  return box;
}

int64_t GridLayout::elements(int rank) const {
  int64_t elements = 1;
  for (size_t a = 0; a < axes().size(); ++a) elements *= range(rank, a).size();
  return elements;
}

int64_t GridLayout::most_elements() const {
  if (holders() == 0) return 0;
  int64_t elements = 1;
  for (const AxisPtr& axis : axes()) elements *= axis->most;
  return elements;
}

int GridLayout::first_with_most() const {
  const int64_t most = most_elements();
  for (int rank = 0; rank < ranks(); ++rank)
    if (holds(rank) && elements(rank) == most) return rank;
  return -1;
}

size_t GridLayout::places() const {
  size_t places = 1;
  for (const AxisPtr& axis : axes()) places *= axis->ranges.size();
  return places;
}

size_t GridLayout::place(int rank) const {
  size_t place = 0;
  for (const AxisPtr& axis : axes())
    place = place * axis->ranges.size() + static_cast<size_t>(axis->of_rank[static_cast<size_t>(rank)]);
  return place;
}

std::vector<std::vector<int>> GridLayout::replicas() const {
  std::vector<int> group_at(places(), -1);
  std::vector<std::vector<int>> groups;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (!holds(rank)) continue;
    int& group = group_at[place(rank)];
    if (group < 0) {
      group = static_cast<int>(groups.size());
      groups.emplace_back();
    }
    groups[static_cast<size_t>(group)].push_back(rank);
  }
  return groups;
}

}  // namespace cortado
