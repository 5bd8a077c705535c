#include "cortado/program/equal_blocks.h"

#include <algorithm>
#include <set>

namespace cortado {
namespace {

using Operation = Placement::Operation;
using Value = Placement::Value;

// Asks whether the blocks of so many ranks are equal.
class Blocks {
 public:
  Blocks(const Placement& placement, int ranks)
      : placement_(placement),
        ranks_(static_cast<size_t>(ranks)),
        blocks_(static_cast<size_t>(placement.ranks / ranks)) {}

  bool equal() {
    return std::ranges::all_of(placement_.values, [&](const Value& value) { return may_hold(value); }) &&
           std::ranges::all_of(placement_.operations,
                               [&](const Operation& of) { return does_the_same(of); }) &&
           std::ranges::all_of(placement_.slices, [&](const Layout& slices) { return repeats(slices); }) &&
           std::ranges::all_of(placement_.replicas, [&](const auto& groups) { return repeats(groups); });
  }

 private:
  static int64_t samples_of(const Layout& layout) {
    int64_t samples = 0;
    for (const auto& box : layout)
      if (box && box->rank() > 0) samples = std::max(samples, (*box)[0].end);
    return samples;
  }

  // Each block holds of its own samples what the first one holds of its.
  bool by_samples(const Layout& layout) const {
    const int64_t samples = samples_of(layout);
    if (samples % static_cast<int64_t>(blocks_) != 0) return false;
    const int64_t own = samples / static_cast<int64_t>(blocks_);
    for (size_t rank = 0; rank < layout.size(); ++rank) {
      const std::optional<Box>& first = layout[rank % ranks_];
      if (first && (first->rank() == 0 || (*first)[0].end > own)) return false;
      std::optional<Box> moved = first;
      if (moved) {
        const int64_t by = static_cast<int64_t>(rank / ranks_) * own;
        (*moved)[0] = {(*moved)[0].begin + by, (*moved)[0].end + by};
      }
      if (layout[rank] != moved) return false;
    }
    return true;
  }

  // Each block holds the same.
  bool repeats(const Layout& layout) const {
    for (size_t rank = ranks_; rank < layout.size(); ++rank)
      if (layout[rank] != layout[rank - ranks_]) return false;
    return true;
  }

  // The same ranks of each block hold one box.
  bool one_box(const Layout& layout) const {
    const auto holds = [](const auto& box) { return box.has_value(); };
    const auto first = std::ranges::find_if(layout, holds);
    return first != layout.end() && repeats(layout) &&
           std::ranges::all_of(layout, [&](const auto& box) { return !box || *box == **first; });
  }

  static bool at_all(const Layout& layout) {
    return std::ranges::all_of(layout, [](const auto& box) { return box.has_value(); });
  }

  bool at_one_of_first_block(const Layout& layout) const {
    const auto holds = [](const auto& box) { return box.has_value(); };
    const auto first = std::ranges::find_if(layout, holds);
    return first < layout.begin() + static_cast<std::ptrdiff_t>(ranks_) &&
           std::ranges::count_if(layout, holds) == 1;
  }

  // Samples; or a loss: its addends at ranks of all blocks, their sum at one rank, or that at all again; or
  // what one rank reports.
  bool may_hold(const Value& value) const {
    if (by_samples(value.layout)) return true;
    const Operation& producer = placement_.operations[value.producer];
    if (one_box(value.layout)) return value.partial || (value.consumers.empty() && is_told(producer));
    if (!at_one_of_first_block(value.layout)) return false;
    return (producer.kind == Operation::Kind::copy && value.consumers.empty()) ||
           (is_loss(producer) && std::ranges::all_of(value.consumers, [&](OperationIndex user) {
              return is_told(placement_.operations[user]);
            }));
  }

  // Addends of all blocks are summed at one rank.
  bool is_loss(const Operation& operation) const {
    const auto layout = [&](ValueIndex value) -> const Layout& { return placement_.values[value].layout; };
    return operation.kind == Operation::Kind::sum && one_box(layout(operation.inputs[0])) &&
           at_one_of_first_block(layout(operation.outputs[0]));
  }

  // What one rank has is told to all.
  bool is_told(const Operation& operation) const {
    const auto layout = [&](ValueIndex value) -> const Layout& { return placement_.values[value].layout; };
    return operation.kind == Operation::Kind::copy && at_one_of_first_block(layout(operation.inputs[0])) &&
           one_box(layout(operation.outputs[0])) && at_all(layout(operation.outputs[0]));
  }

  // What moves, moves within blocks, but for what is reported and summed.
  bool does_the_same(const Operation& operation) {
    if (operation.kind == Operation::Kind::source) return true;
    if (operation.kind == Operation::Kind::compute) return computes_the_same(operation);
    const Layout &from = placement_.values[operation.inputs[0]].layout,
                 &to = placement_.values[operation.outputs[0]].layout;
    if (by_samples(from) && by_samples(to)) return samples_of(from) == samples_of(to);
    return operation.kind == Operation::Kind::copy || is_loss(operation);
  }

  bool computes_the_same(const Operation& operation) {
    return by_samples(operation.domain) &&
           std::ranges::all_of(operation.reads, [&](const Layout& reads) { return by_samples(reads); }) &&
           std::ranges::all_of(operation.slices, [&](const Layout& slices) { return repeats(slices); }) &&
           repeats(operation.groups);
  }

  // Groups of ranks of one block, or of ranks at the same places of all blocks.
  bool repeats(const std::vector<RankGroup>& groups) {
    for (size_t rank = 0; rank < groups.size(); ++rank) {
      const RankGroup &first = groups[rank % ranks_], &own = groups[rank];
      const bool inside = !first.empty() && is_inside(first);
      if (rank < ranks_ && !first.empty() && !inside && !crosses_all(first)) return false;
      if (inside ? !is_moved(first, own, rank - rank % ranks_) : own != first) return false;
    }
    return true;
  }

  bool is_inside(const RankGroup& group) const { return group[group.size() - 1] < static_cast<int>(ranks_); }

  static bool is_moved(const RankGroup& first, const RankGroup& own, size_t by) {
    return std::ranges::equal(first, own, {}, [&](int rank) { return rank + static_cast<int>(by); });
  }

  bool crosses_all(const RankGroup& group) {
    if (crossing_.contains(&group.ranks())) return true;
    const size_t of_block = group.size() / blocks_;
    if (of_block * blocks_ != group.size() || group[of_block - 1] >= static_cast<int>(ranks_)) return false;
    for (size_t i = of_block; i < group.size(); ++i)
      if (group[i] != group[i - of_block] + static_cast<int>(ranks_)) return false;
    crossing_.insert(&group.ranks());
    return true;
  }

  const Placement& placement_;
  const size_t ranks_, blocks_;
  std::set<const std::vector<int>*> crossing_;  // groups of which that is known
};

}  // namespace

EqualBlocks equal_blocks(const Placement& placement, int unit) {
  // Sums in a fixed tree are not the same for all blocks.
  for (int ranks = unit; !placement.reproducible && 3 * ranks <= placement.ranks; ranks += unit)
    if (placement.ranks % ranks == 0 && Blocks(placement, ranks).equal())
      return {ranks, placement.ranks / ranks};
  return {placement.ranks, 1};
}

}  // namespace cortado
