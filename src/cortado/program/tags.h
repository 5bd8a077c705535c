#pragma once

#include "cortado/program/placement.h"

namespace cortado {

// The tags of the messages between two ranks (Communicator::exchange). Those of a Program lie in four ranges,
// each of which begins where the one before it ends. A sum in a tree (comm/tree_sum.h) takes two tags: its
// own and the next one.
class MessageTags {
 public:
  static constexpr int directions = 2, halves = 2, of_tree_sum = 2;

  constexpr explicit MessageTags(int operations) : operations_(operations) {}
  explicit MessageTags(const Placement& placement)
      : MessageTags(static_cast<int>(placement.operations.size())) {}

  // An exchange of a tensor, or of one half of its samples.
  constexpr int exchange(OperationIndex operation, int half, bool backward) const {
    return directions * (operation.value() + half * operations_) + (backward ? 1 : 0);
  }
  // The same exchange, run once more (recompute.cpp).
  constexpr int exchange_again(int first) const { return first_again() + first; }
  // A sum of statistics in a tree.
  constexpr int statistics(OperationIndex operation, bool backward) const {
    return first_statistics() + of_tree_sum * (directions * operation.value() + (backward ? 1 : 0));
  }
  // A sum of gradients in a tree, by the first of its parameters.
  constexpr int gradients(ParameterIndex first) const {
    return first_gradients() + of_tree_sum * first.value();
  }

 private:
  constexpr int first_again() const { return directions * halves * operations_; }
  constexpr int first_statistics() const { return 2 * first_again(); }
  constexpr int first_gradients() const {
    return first_statistics() + of_tree_sum * directions * operations_;
  }

  int operations_;
};

// The end of what rank 0 does alone in a comparison (train/compare_cut.cpp). No Program runs meanwhile, so a
// large one may have the same tag.
inline constexpr int end_of_rank_0_tag = 29999;

}  // namespace cortado
