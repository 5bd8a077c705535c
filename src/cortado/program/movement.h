#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cortado/base/element_type.h"
#include "cortado/parallel/layout.h"
#include "cortado/parallel/rank_group.h"

namespace cortado {

// One rank's part in moving a tensor from the boxes that ranks hold to the boxes that they need: what it
// sends, what it receives and what it has already. With `sums` the received boxes are added, else they
// replace.
//
// A movement is a collective of a group of ranks where all of them need the same box, hold its parts among
// themselves, and exchange nothing with other ranks: an allgather (a broadcast, where one rank has the whole
// box), or its adjoint, a reduce-scatter (a reduce). All ranks find the same groups in the same layouts.
// `sends` and `receives` then say what the collective amounts to. A small tensor that one rank has goes by
// messages: they arrive sooner than what is handed on from rank to rank.
struct Movement {
  enum class Pattern { messages, allgather, broadcast, reduce_scatter, reduce };
  struct Part {
    int peer = 0;
    Box box;
  };
  std::optional<Box> from, to;        // boxes of the tensor that this rank holds before and after
  std::vector<Part> sends, receives;  // by peer; boxes within `from` and `to`
  std::optional<Box> local;           // what it has already of what it needs
  bool sums = false;
  ElementType from_type = ElementType::f32, to_type = ElementType::f32;  // in memory, before and after
  RankGroup group;                                                       // empty: messages
  bool in_tree = false;  // equal boxes are summed in a fixed tree, by rank (base/sum_tree.h); no collective
  Layout chunks;         // per member of the group: its part of the box that all need

  // What travels. Collectives sum in f32.
  ElementType type() const { return sums && !group.empty() ? ElementType::f32 : from_type; }

  Pattern pattern() const;
  bool nothing() const { return !from && !to; }
  bool talks() const { return !sends.empty() || !receives.empty(); }
  // Parts that are sent from or received into the tensor's own memory; others are packed.
  bool direct_send(const Part& part) const;
  bool direct_receive(const Part& part) const;
  // True when the chunks lie one after the other in the tensor's own memory, so that an allgather needs no
  // staging.
  bool chunks_in_order() const;
  int64_t packed() const;  // elements of staging: what is packed, or the chunks of a collective
};

std::string_view name_of(Movement::Pattern pattern);  // "messages", "allgather", "reduce-scatter", ...

// True when `part` of a dense, channels-last tensor `held` is one run of memory.
bool contiguous(const Box& part, const Box& held);

// This rank's part in copying from `owned` to `needed`.
Movement copy_movement(const Layout& owned, const Layout& needed, int rank,
                       ElementType type = ElementType::f32);

// The adjoint: the same boxes back, summed where the copy came from, and the other way round.
Movement adjoint(const Movement& movement);

// This rank's part in summing the addends that ranks hold at the owners. The sum may be of another type.
Movement sum_movement(const Layout& addends, const Layout& owned, int rank,
                      ElementType addend_type = ElementType::f32, ElementType sum_type = ElementType::f32);

}  // namespace cortado
