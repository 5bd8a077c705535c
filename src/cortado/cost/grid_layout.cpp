#include "cortado/cost/grid_layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace cortado {
namespace {

// A dimension that is cut: its coordinate grows by one every `stride` devices (config.h).
struct CutDimension {
  int degree = 1, stride = 1;
};

std::vector<CutDimension> cut_dimensions(const Degrees& degrees) {
  std::vector<CutDimension> cut;
  int stride = degrees.product();
  for (int degree : {degrees.n, degrees.d, degrees.h, degrees.w, degrees.c, degrees.r}) {
    stride /= degree;
    if (degree > 1) cut.push_back({degree, stride});
  }
  return cut;
}

// Along one axis of a layout: the dimensions that change it, the range of each of their combinations.
struct AxisCut {
  std::vector<CutDimension> changed_by;
  std::vector<Range> ranges;

  int combinations() const { return static_cast<int>(ranges.size()); }
  // The number of the combination at each device, of the first `devices`.
  std::vector<int> of_device(int devices) const {
    std::vector<int> numbers(static_cast<size_t>(devices));
    for (const CutDimension& dimension : changed_by) {
      for (int begin = 0, coordinate = 0; begin < devices; begin += dimension.stride) {
        for (int i = begin; i < begin + dimension.stride; ++i) {
          int& number = numbers[static_cast<size_t>(i)];
          number = number * dimension.degree + coordinate;
        }
        coordinate = coordinate + 1 == dimension.degree ? 0 : coordinate + 1;
      }
    }
    return numbers;
  }
};

// The axes of box_of, from the devices along each dimension and, where several change an axis, those of all
// of their coordinates.
std::vector<AxisCut> axis_cuts(const Degrees& degrees, const std::function<Box(int)>& box_of) {
  const Box first = box_of(0);
  std::vector<AxisCut> axes(static_cast<size_t>(first.rank()));
  for (size_t a = 0; a < axes.size(); ++a) axes[a].ranges = {first[static_cast<int>(a)]};
  for (const CutDimension& dimension : cut_dimensions(degrees)) {
    std::vector<Box> boxes{first};
    for (int i = 1; i < dimension.degree; ++i) boxes.push_back(box_of(i * dimension.stride));
    for (size_t a = 0; a < axes.size(); ++a) {
      const int axis = static_cast<int>(a);
      if (std::ranges::all_of(boxes, [&](const Box& box) { return box[axis] == first[axis]; })) continue;
      AxisCut& cut = axes[a];
      cut.changed_by.push_back(dimension);
      if (cut.changed_by.size() == 1) {
        cut.ranges.clear();
        for (const Box& box : boxes) cut.ranges.push_back(box[axis]);
      }
    }
  }
  for (size_t a = 0; a < axes.size(); ++a) {
    AxisCut& cut = axes[a];
    if (cut.changed_by.size() < 2) continue;
    int combinations = 1;
    for (const CutDimension& dimension : cut.changed_by) combinations *= dimension.degree;
    cut.ranges.clear();
    for (int number = 0; number < combinations; ++number) {
      int index = 0, rest = number;
      for (size_t k = cut.changed_by.size(); k-- > 0; rest /= cut.changed_by[k].degree)
        index += rest % cut.changed_by[k].degree * cut.changed_by[k].stride;
      cut.ranges.push_back(box_of(index)[static_cast<int>(a)]);
    }
  }
  return axes;
}

void mix(size_t& hash, size_t value) { hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2); }

}  // namespace

GridLayout::GridLayout(const Layout& layout) {
  Content content;
  content.holds.resize(layout.size());
  int rank_of_tensor = 0;
  for (size_t rank = 0; rank < layout.size(); ++rank) {
    if (!layout[rank]) continue;
    content.holds[rank] = 1;
    ++content.holders;
    rank_of_tensor = layout[rank]->rank();
  }
  for (int a = 0; a < rank_of_tensor; ++a) {
    std::vector<Range> ranges;
    std::vector<int> of_rank(layout.size());
    for (size_t rank = 0; rank < layout.size(); ++rank) {
      if (!layout[rank]) continue;
      of_rank[rank] = static_cast<int>(ranges.size());
      ranges.push_back((*layout[rank])[a]);
    }
    add_axis(content, ranges, std::move(of_rank));
  }
  finish(std::move(content));
}

GridLayout::GridLayout(const ParallelConfig& config, int ranks, const std::function<Box(int)>& box_of) {
  const std::vector<AxisCut> axes = axis_cuts(config.degrees, box_of);
  const int devices = static_cast<int>(config.devices.size());
  Content content;
  content.holds.resize(static_cast<size_t>(ranks));
  for (int device : config.devices) content.holds[static_cast<size_t>(device)] = 1;
  std::vector<std::vector<int>> of_rank;
  for (const AxisCut& axis : axes) {
    const std::vector<int> of_device = axis.of_device(devices);
    std::vector<int>& numbers = of_rank.emplace_back(static_cast<size_t>(ranks));
    const bool gaps = std::ranges::any_of(axis.ranges, [](const Range& range) { return range.size() == 0; });
    for (int i = 0; i < devices; ++i) {
      const auto device = static_cast<size_t>(config.devices[static_cast<size_t>(i)]);
      numbers[device] = of_device[static_cast<size_t>(i)];
      if (gaps && axis.ranges[static_cast<size_t>(numbers[device])].size() == 0) content.holds[device] = 0;
    }
  }
  content.holders = static_cast<int>(std::ranges::count(content.holds, 1));
  if (content.holders > 0)
    for (size_t a = 0; a < axes.size(); ++a) add_axis(content, axes[a].ranges, std::move(of_rank[a]));
  finish(std::move(content));
}

void GridLayout::add_axis(Content& content, const std::vector<Range>& ranges, std::vector<int> of_rank) {
  Axis axis;
  std::vector<int> known(ranges.size(), -1), counts;
  bool first_ones = true;  // whether the ranks that hold something are the first ones
  for (size_t rank = 0; rank < of_rank.size(); ++rank) {
    if (!content.holds[rank]) continue;
    first_ones &= static_cast<int>(rank) < content.holders;
    int& number = known[static_cast<size_t>(of_rank[rank])];
    if (number < 0) {
      const Range& range = ranges[static_cast<size_t>(of_rank[rank])];
      const auto found = std::ranges::find(axis.ranges, range);
      number = static_cast<int>(found - axis.ranges.begin());
      if (found == axis.ranges.end()) axis.ranges.push_back(range), counts.push_back(0);
    }
    of_rank[rank] = number;
    ++counts[static_cast<size_t>(number)];
  }
  for (size_t rank = 0; rank < of_rank.size(); ++rank) {
    if (!content.holds[rank])
      of_rank[rank] = first_ones ? of_rank[rank % static_cast<size_t>(content.holders)] : 0;
  }
  for (int count : counts) axis.share.push_back(static_cast<double>(count) / content.holders);
  axis.of_rank = std::move(of_rank);
  content.axes.push_back(std::move(axis));
}

void GridLayout::finish(Content content) {
  size_t hash = static_cast<size_t>(content.holders);
  for (const Axis& axis : content.axes) {
    for (const Range& range : axis.ranges)
      mix(hash, static_cast<size_t>(range.begin)), mix(hash, static_cast<size_t>(range.end));
    for (size_t rank = 1; rank < axis.of_rank.size(); rank *= 2)
      mix(hash, static_cast<size_t>(axis.of_rank[rank]));
  }
  content.hash = hash;
  content_ = std::make_shared<const Content>(std::move(content));
}

bool GridLayout::same(const GridLayout& other) const {
  return content_->holds == other.content_->holds && axes() == other.axes();
}

bool GridLayout::is_grid() const {
  std::map<std::vector<int>, int> counts;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (!holds(rank)) continue;
    std::vector<int> place;
    for (const Axis& axis : axes()) place.push_back(axis.of_rank[static_cast<size_t>(rank)]);
    ++counts[place];
  }
  double combinations = 1;
  for (const Axis& axis : axes()) combinations *= static_cast<double>(axis.ranges.size());
  if (holders() > 0 && static_cast<double>(counts.size()) != combinations) return false;
  return std::ranges::all_of(counts, [&](const auto& entry) {
    double expected = holders();
    for (size_t a = 0; a < axes().size(); ++a)
      expected *= axes()[a].share[static_cast<size_t>(entry.first[a])];
    return std::abs(expected - entry.second) < 1e-6;
  });
}

int64_t GridLayout::elements(int rank) const {
  int64_t elements = 1;
  for (size_t a = 0; a < axes().size(); ++a) elements *= range(rank, a).size();
  return elements;
}

int64_t GridLayout::most_elements() const {
  if (holders() == 0) return 0;
  int64_t elements = 1;
  for (const Axis& axis : axes()) {
    int64_t most = 0;
    for (const Range& range : axis.ranges) most = std::max(most, range.size());
    elements *= most;
  }
  return elements;
}

int GridLayout::first_with_most() const {
  const int64_t most = most_elements();
  for (int rank = 0; rank < ranks(); ++rank)
    if (holds(rank) && elements(rank) == most) return rank;
  return -1;
}

std::vector<std::vector<int>> GridLayout::replicas() const {
  size_t places = 1;
  for (const Axis& axis : axes()) places *= axis.ranges.size();
  std::vector<int> group_at(places, -1);
  std::vector<std::vector<int>> groups;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (!holds(rank)) continue;
    size_t place = 0;
    for (const Axis& axis : axes())
      place = place * axis.ranges.size() + static_cast<size_t>(axis.of_rank[static_cast<size_t>(rank)]);
    if (group_at[place] < 0) {
      group_at[place] = static_cast<int>(groups.size());
      groups.emplace_back();
    }
    groups[static_cast<size_t>(group_at[place])].push_back(rank);
  }
  return groups;
}

}  // namespace cortado
