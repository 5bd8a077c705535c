#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "cortado/base/fields.h"
#include "cortado/base/spelling.h"
#include "cortado/parallel/strategy.h"

namespace cortado {

// What a user sets in place of a strategy's own schedule, and of the way in which its layers sum gradients.
struct ScheduleChanges {
  std::string gradient_chunks;  // as of parse_chunks(); empty: as the strategy says
  bool no_late_updates = false;
  bool halves = false;
  std::vector<std::string> replicate;  // layers whose gradients every replica computes
  static constexpr auto fields =
      std::tuple{field("gradient-chunks", &ScheduleChanges::gradient_chunks),
                 field("no-late-updates", &ScheduleChanges::no_late_updates),
                 field("halves", &ScheduleChanges::halves), field("replicate", &ScheduleChanges::replicate)};
};

// Throws UserError naming what was set ("--replicate" as an option) where its value does not fit.
void apply(const ScheduleChanges& changes, const Network& network, Strategy& strategy, Spelling spelled);

}  // namespace cortado
