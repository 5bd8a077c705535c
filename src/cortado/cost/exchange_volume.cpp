#include "cortado/cost/exchange_volume.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace cortado {
namespace {

constexpr double float_bytes = sizeof(float);

int64_t common(const Range& a, const Range& b) {
  return std::max<int64_t>(0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
}

double overlap(const GridLayout& a, int rank_a, const GridLayout& b, int rank_b) {
  double elements = 1;
  for (size_t axis = 0; axis < a.axes().size(); ++axis)
    elements *= static_cast<double>(common(a.range(rank_a, axis), b.range(rank_b, axis)));
  return elements;
}

// For a move between two grids: per axis and range of one, what the ranks of the other hold of it on average.
class MeanOverlap {
 public:
  MeanOverlap(const GridLayout& of, const GridLayout& with) : of_(of), holders_(with.holders()) {
    for (size_t a = 0; a < of.axes().size(); ++a) {
      const auto& own = of.axes()[a];
      const auto& other = with.axes()[a];
      means_.emplace_back(own.ranges.size());
      for (size_t i = 0; i < own.ranges.size(); ++i) {
        for (size_t j = 0; j < other.ranges.size(); ++j)
          means_[a][i] += other.share[j] * static_cast<double>(common(own.ranges[i], other.ranges[j]));
      }
    }
  }
  // Elements of this rank's box that all ranks of the other grid hold together, copies counted.
  double all(int rank) const {
    double elements = holders_;
    for (size_t a = 0; a < means_.size(); ++a)
      elements *= means_[a][static_cast<size_t>(of_.axes()[a].of_rank[static_cast<size_t>(rank)])];
    return elements;
  }

 private:
  const GridLayout& of_;
  double holders_;
  std::vector<std::vector<double>> means_;
};

// Owners that a rank hears of: the combinations of owned ranges that meet what it needs.
int senders(const GridLayout& owned, const GridLayout& needed, int rank) {
  int count = 1;
  for (size_t a = 0; a < owned.axes().size(); ++a) {
    const Range range = needed.range(rank, a);
    count *= static_cast<int>(std::ranges::count_if(
        owned.axes()[a].ranges, [&](const Range& other) { return common(range, other) > 0; }));
  }
  return count;
}

class VolumeCount {
 public:
  VolumeCount(const GridLayout& owned, const GridLayout& needed, const std::vector<int>& node_of)
      : owned_(owned), needed_(needed), node_of_(node_of), sent_(owned, needed) {
    nodes_ = node_of.empty() ? 1 : 1 + *std::ranges::max_element(node_of);
    into_.resize(static_cast<size_t>(nodes_));
    out_of_.resize(static_cast<size_t>(nodes_));
  }

  ExchangeVolume run() {
    for (int rank = 0; rank < owned_.ranks(); ++rank) {
      if (needed_.holds(rank)) receive(rank);
      if (owned_.holds(rank)) send(rank);
    }
    for (int node = 0; node < nodes_; ++node)
      most_.node_across =
          std::max({most_.node_across, into_[static_cast<size_t>(node)], out_of_[static_cast<size_t>(node)]});
    return most_;
  }

 private:
  // Elements that ranks of `rank`'s node, itself apart, hold of its box.
  double neighbours(const GridLayout& of, const GridLayout& with, int rank) const {
    if (nodes_ == 1) return 0;
    double elements = 0;
    for (int other = 0; other < with.ranks(); ++other) {
      if (other != rank && with.holds(other) && at(other) == at(rank))
        elements += overlap(of, rank, with, other);
    }
    return elements;
  }

  void receive(int rank) {
    const double own = owned_.holds(rank) ? overlap(needed_, rank, owned_, rank) : 0;
    const double moved = static_cast<double>(needed_.elements(rank)) - own;
    if (moved <= 0) return;
    most_.messages = std::max(most_.messages, senders(owned_, needed_, rank) - (own > 0 ? 1 : 0));
    most_.total += static_cast<int64_t>(moved * float_bytes);
    count(moved, neighbours(needed_, owned_, rank), into_[static_cast<size_t>(at(rank))]);
  }

  void send(int rank) {
    const double own = needed_.holds(rank) ? overlap(owned_, rank, needed_, rank) : 0;
    count(sent_.all(rank) - own, neighbours(owned_, needed_, rank), out_of_[static_cast<size_t>(at(rank))]);
  }

  void count(double moved, double near, double& of_node) {
    const double inside = nodes_ == 1 ? moved : near;
    most_.inside = std::max(most_.inside, inside * float_bytes);
    most_.across = std::max(most_.across, (moved - inside) * float_bytes);
    of_node += (moved - inside) * float_bytes;
  }

  int at(int rank) const { return node_of_.empty() ? 0 : node_of_[static_cast<size_t>(rank)]; }

  const GridLayout &owned_, &needed_;
  const std::vector<int>& node_of_;
  MeanOverlap sent_;
  int nodes_ = 1;
  ExchangeVolume most_;
  std::vector<double> into_, out_of_;
};

}  // namespace

GridLayout::GridLayout(const Layout& layout) : holds_(layout.size()) {
  int rank_of_tensor = 0;
  for (size_t rank = 0; rank < layout.size(); ++rank) {
    if (!layout[rank]) continue;
    holds_[rank] = true;
    ++holders_;
    rank_of_tensor = layout[rank]->rank();
  }
  axes_.resize(static_cast<size_t>(rank_of_tensor));
  for (size_t a = 0; a < axes_.size(); ++a) {
    Axis& axis = axes_[a];
    axis.of_rank.resize(layout.size());
    for (size_t rank = 0; rank < layout.size(); ++rank) {
      if (!layout[rank]) continue;
      const Range range = (*layout[rank])[static_cast<int>(a)];
      const auto found = std::ranges::find(axis.ranges, range);
      axis.of_rank[rank] = static_cast<int>(found - axis.ranges.begin());
      if (found == axis.ranges.end()) axis.ranges.push_back(range), axis.share.push_back(0);
      axis.share[static_cast<size_t>(axis.of_rank[rank])] += 1.0 / holders_;
    }
  }
}

bool GridLayout::is_grid() const {
  std::map<std::vector<int>, int> counts;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (!holds(rank)) continue;
    std::vector<int> place;
    for (const Axis& axis : axes_) place.push_back(axis.of_rank[static_cast<size_t>(rank)]);
    ++counts[place];
  }
  double combinations = 1;
  for (const Axis& axis : axes_) combinations *= static_cast<double>(axis.ranges.size());
  if (holders_ > 0 && static_cast<double>(counts.size()) != combinations) return false;
  return std::ranges::all_of(counts, [&](const auto& entry) {
    double expected = holders_;
    for (size_t a = 0; a < axes_.size(); ++a) expected *= axes_[a].share[static_cast<size_t>(entry.first[a])];
    return std::abs(expected - entry.second) < 1e-6;
  });
}

int64_t GridLayout::elements(int rank) const {
  int64_t elements = 1;
  for (size_t a = 0; a < axes_.size(); ++a) elements *= range(rank, a).size();
  return elements;
}

ExchangeVolume exchange_volume(const GridLayout& owned, const GridLayout& needed,
                               const std::vector<int>& node_of) {
  return VolumeCount(owned, needed, node_of).run();
}

}  // namespace cortado
