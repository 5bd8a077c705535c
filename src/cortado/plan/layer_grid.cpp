#include "cortado/plan/layer_grid.h"

#include <algorithm>
#include <numeric>

#include "cortado/base/error.h"

namespace cortado::plan {
namespace {

constexpr int Degrees::*members[] = {&Degrees::n, &Degrees::d, &Degrees::h,
                                     &Degrees::w, &Degrees::c, &Degrees::r};

template <typename List>
ParallelConfig config_of(const List& list) {
  ParallelConfig config;
  for (size_t k = 0; k < list.size(); ++k) config.degrees.*members[k] = list[k];
  config.devices.resize(static_cast<size_t>(config.degrees.product()));
  std::iota(config.devices.begin(), config.devices.end(), 0);
  return config;
}

bool first_devices(const ParallelConfig& config) {
  for (size_t i = 0; i < config.devices.size(); ++i)
    if (config.devices[i] != static_cast<int>(i)) return false;
  return config.weights.empty();
}

}  // namespace

BoxGrid::BoxGrid(CutterOf cutter_of, BoxOf box_of, int ranks)
    : cutter_of_(std::move(cutter_of)), box_of_(std::move(box_of)), ranks_(ranks) {}

// The ranges of a configuration in which every dimension that is cut changes what the others do, or that cuts
// one dimension.
BoxGrid::Ranges BoxGrid::ranges_of(const DegreeList& degrees) const {
  const ParallelConfig config = config_of(degrees);
  const LayerCutter cutter = cutter_of_(config);
  Ranges ranges(static_cast<size_t>(whole_.rank()));
  std::vector<bool> changed(ranges.size());
  for (std::vector<Range>& of_axis : ranges) of_axis.reserve(config.devices.size());
  for (int index = 0; index < config.degrees.product(); ++index) {
    const Box box = box_of_(cutter, index);
    for (size_t a = 0; a < ranges.size(); ++a) {
      ranges[a].push_back(box[static_cast<int>(a)]);
      if (ranges[a].back() != whole_[static_cast<int>(a)]) changed[a] = true;
    }
  }
  for (size_t a = 0; a < ranges.size(); ++a)
    if (!changed[a]) ranges[a].clear();
  return ranges;
}

const BoxGrid::Ranges& BoxGrid::alone(size_t dimension, int degree) {
  const auto known = alone_[dimension].find(degree);
  if (known != alone_[dimension].end()) return known->second;
  DegreeList degrees;
  degrees.fill(1);
  degrees[dimension] = degree;
  return alone_[dimension][degree] = ranges_of(degrees);
}

GridLayout BoxGrid::layout(const ParallelConfig& config) {
  if (!first_devices(config)) return box_by_box(config);
  if (!last_ || last_degrees_ != config.degrees) {
    last_ = of_first_devices(config);
    last_degrees_ = config.degrees;
  }
  return *last_;
}

GridLayout BoxGrid::of_first_devices(const ParallelConfig& config) {
  if (!known_) {
    const ParallelConfig one;
    whole_ = box_of_(cutter_of_(one), 0);
    known_ = true;
  }
  std::array<Cut, dimensions> cuts;
  size_t count = 0;
  int stride = config.degrees.product();
  for (size_t k = 0; k < dimensions; ++k) {
    const int degree = config.degrees.*members[k];
    stride /= degree;
    if (degree > 1) cuts[count++] = {k, degree, stride, &alone(k, degree)};
  }
  std::vector<GridLayout::AxisPtr> axes(static_cast<size_t>(whole_.rank()));
  for (size_t a = 0; a < axes.size(); ++a) {
    axes[a] = axis(a, Cuts(cuts).first(count));
    if (!axes[a]) return box_by_box(config);
  }
  return {ranks_, config.degrees.product(), std::move(axes)};
}

size_t BoxGrid::HashOfKey::operator()(const AxisKey& key) const {
  size_t hash = 0;
  for (int64_t each : key) hash = (hash ^ static_cast<size_t>(each)) * 0x9e3779b97f4a7c15ULL;
  return hash ^ hash >> 32;
}

// Null where some ranges are empty.
GridLayout::AxisPtr BoxGrid::axis(size_t axis, Cuts cuts) {
  std::array<Cut, dimensions> changing;
  size_t count = 0;
  AxisKey key{static_cast<int64_t>(axis)};
  for (const Cut& cut : cuts) {
    if ((*cut.alone)[axis].empty()) continue;
    changing[count++] = cut;
    key[count] = cut.key();
  }
  const auto [known, is_new] = axes_.try_emplace(key);
  if (!is_new) return known->second;
  const Cuts active = Cuts(changing).first(count);
  DegreeList degrees;
  degrees.fill(1);
  for (const Cut& cut : active) degrees[cut.dimension] = cut.degree;
  std::vector<Range> ranges{whole_[static_cast<int>(axis)]};
  if (count == 1) ranges = (*active[0].alone)[axis];
  if (count > 1) ranges = ranges_of(degrees)[axis];
  return known->second = made(ranges, active);
}

GridLayout::AxisPtr BoxGrid::made(const std::vector<Range>& ranges, Cuts cuts) const {
  if (std::ranges::any_of(ranges, [](const Range& range) { return range.size() == 0; })) return nullptr;
  std::vector<Range> distinct;
  std::vector<int> of_rank, number_of(ranges.size(), -1), counts;
  distinct.reserve(ranges.size());
  counts.reserve(ranges.size());
  of_rank.reserve(static_cast<size_t>(ranks_));
  std::map<std::pair<int64_t, int64_t>, int> numbers;  // of distinct ranges
  for (int rank = 0; rank < ranks_; ++rank) {
    size_t combination = 0;
    for (const Cut& cut : cuts)
      combination =
          combination * static_cast<size_t>(cut.degree) + static_cast<size_t>(rank / cut.stride % cut.degree);
    int& number = number_of[combination];
    if (number < 0) {
      const Range& range = ranges[combination];
      const auto [known, is_new] =
          numbers.emplace(std::pair(range.begin, range.end), static_cast<int>(distinct.size()));
      number = known->second;
      if (is_new) distinct.push_back(range), counts.push_back(0);
      ++counts[static_cast<size_t>(number)];
    }
    of_rank.push_back(number);
  }
  std::vector<double> share;
  share.reserve(counts.size());
  for (int count : counts) share.push_back(static_cast<double>(count) / static_cast<double>(ranges.size()));
  return std::make_shared<const GridLayout::Axis>(std::move(distinct), std::move(share), std::move(of_rank));
}

GridLayout BoxGrid::box_by_box(const ParallelConfig& config) const {
  const LayerCutter cutter = cutter_of_(config);
  Layout layout(static_cast<size_t>(ranks_));
  for (size_t i = 0; i < config.devices.size(); ++i) {
    const Box box = box_of_(cutter, static_cast<int>(i));
    if (!box.empty()) layout[static_cast<size_t>(config.devices[i])] = box;
  }
  return GridLayout(layout);
}

LayerGrid::LayerGrid(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs,
                     int ranks)
    : layer_(layer), outputs_(outputs), ranks_(ranks) {
  auto grid = [&layer, inputs, outputs, ranks](BoxGrid::BoxOf box_of) {
    return BoxGrid([&layer, inputs, outputs](
                       const ParallelConfig& config) { return LayerCutter(layer, inputs, outputs, config); },
                   std::move(box_of), ranks);
  };
  const auto one = [&grid](BoxGrid::BoxOf box_of) {
    return std::make_unique<BoxGrid>(grid(std::move(box_of)));
  };
  domain_ = one([](const LayerCutter& cutter, int index) { return cutter.domain(index); });
  replicas_domain_ = one([](const LayerCutter& cutter, int index) { return cutter.replicas_domain(index); });
  replicas_reads_ = one([](const LayerCutter& cutter, int index) { return cutter.replicas_reads(index); });
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i)
    reads_.push_back(grid([i](const LayerCutter& cutter, int index) { return cutter.reads(i, index); }));
  for (int k = 0; k < static_cast<int>(outputs.size()); ++k) {
    computes_.push_back(
        grid([k](const LayerCutter& cutter, int index) { return cutter.computes(k, index); }));
    owns_.push_back(grid([k](const LayerCutter& cutter, int index) { return *cutter.owns(k, index); }));
  }
  const int parameters = static_cast<int>(layer.parameters(inputs).size());
  for (int p = 0; p < parameters; ++p)
    slices_.push_back(grid([p](const LayerCutter& cutter, int index) { return cutter.slice(p, index); }));
}

GridLayout LayerGrid::owns(int output, const ParallelConfig& config) {
  // The first device has the sum of what several computed (LayerCutter::owns).
  const bool one = config.degrees.r == 1 && config.devices.size() > 1 && layer_.sums(output);
  if (!one) return of(owns_, output).layout(config);
  Layout layout(static_cast<size_t>(ranks_));
  layout[static_cast<size_t>(config.devices[0])] = Box::whole(outputs_[static_cast<size_t>(output)]);
  return GridLayout(layout);
}

}  // namespace cortado::plan
