#include "cortado/plan/layer_grid.h"

#include <algorithm>
#include <numeric>
#include <tuple>

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

// Per range the number of the first one that equals it.
std::vector<int> first_same(const std::vector<Range>& ranges) {
  std::vector<int> same(ranges.size()), order(ranges.size());
  std::iota(order.begin(), order.end(), 0);
  const auto of = [&](int i) -> const Range& { return ranges[static_cast<size_t>(i)]; };
  std::ranges::sort(order, [&](int a, int b) {
    return std::tuple(of(a).begin, of(a).end, a) < std::tuple(of(b).begin, of(b).end, b);
  });
  for (size_t i = 0; i < order.size(); ++i) {
    const bool repeated = i > 0 && of(order[i]) == of(order[i - 1]);
    same[static_cast<size_t>(order[i])] = repeated ? same[static_cast<size_t>(order[i - 1])] : order[i];
  }
  return same;
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
  const auto count = static_cast<size_t>(config.degrees.product());
  const auto axes = static_cast<size_t>(whole_.rank());
  std::vector<Range> all(axes * count);
  for (size_t index = 0; index < count; ++index) {
    const Box box = box_of_(cutter, static_cast<int>(index));
    for (size_t a = 0; a < axes; ++a) all[a * count + index] = box[static_cast<int>(a)];
  }
  Ranges ranges(axes);
  for (size_t a = 0; a < axes; ++a) {
    const auto of_axis = std::span(all).subspan(a * count, count);
    const Range& uncut = whole_[static_cast<int>(a)];
    if (std::ranges::any_of(of_axis, [&](const Range& range) { return range != uncut; }))
      ranges[a].assign(of_axis.begin(), of_axis.end());
  }
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
  const auto changes = [](const Cut& cut) {
    return std::ranges::any_of(*cut.alone, [](const auto& of_axis) { return !of_axis.empty(); });
  };
  Key key{config.degrees.product()};
  size_t changing = 0;
  for (const Cut& cut : Cuts(cuts).first(count))
    if (changes(cut)) key[++changing] = cut.key();
  const bool shared = changing < count;  // with configurations that cut otherwise what changes nothing
  if (shared)
    if (const auto known = layouts_.find(key); known != layouts_.end()) return known->second;
  GridLayout::Axes axes;
  for (size_t a = 0; a < static_cast<size_t>(whole_.rank()); ++a) {
    axes.push_back(axis(a, Cuts(cuts).first(count)));
    if (!axes[a]) return box_by_box(config);
  }
  const GridLayout layout(ranks_, config.degrees.product(), std::move(axes));
  if (shared) layouts_.emplace(key, layout);
  return layout;
}

size_t BoxGrid::HashOfKey::operator()(const Key& key) const {
  size_t hash = 0;
  for (int64_t each : key) {
    hash = (hash ^ static_cast<size_t>(each)) * 0x9e3779b97f4a7c15ULL;
    if (each == 0) break;
  }
  return hash ^ hash >> 32;
}

// Null where some ranges are empty.
GridLayout::AxisPtr BoxGrid::axis(size_t axis, Cuts cuts) {
  std::array<Cut, dimensions> changing;
  size_t count = 0;
  Key key{1 + static_cast<int64_t>(axis)};
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
  const std::vector<int> same = first_same(ranges);
  std::vector<int> number_of(ranges.size(), -1);  // of distinct ranges, in the order of their first ranks
  std::vector<Range> distinct;
  std::vector<double> share;
  std::vector<int> of_rank;
  distinct.reserve(ranges.size());
  share.reserve(ranges.size());
  of_rank.reserve(static_cast<size_t>(ranks_));
  for (int rank = 0; rank < ranks_; ++rank) {
    size_t combination = 0;
    for (const Cut& cut : cuts)
      combination =
          combination * static_cast<size_t>(cut.degree) + static_cast<size_t>(rank / cut.stride % cut.degree);
    int& number = number_of[static_cast<size_t>(same[combination])];
    if (number < 0) {
      number = static_cast<int>(distinct.size());
      distinct.push_back(ranges[combination]);
      share.push_back(0);
    }
    of_rank.push_back(number);
  }
  for (int combination : same) share[static_cast<size_t>(number_of[static_cast<size_t>(combination)])] += 1;
  for (double& each : share) each /= static_cast<double>(ranges.size());
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
