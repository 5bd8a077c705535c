#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cortado/base/fields.h"
#include "cortado/base/spelling.h"
#include "cortado/parallel/strategy.h"

namespace cortado {

// What a user sets in place of a strategy's own schedule, and of the way in which its layers sum gradients.
struct ScheduleChanges {
  std::string gradient_chunks{};  // as of parse_chunks(); empty: as the strategy says
  bool no_late_updates = false;
  bool halves = false;
  std::vector<std::string> replicate{};  // layers whose gradients every replica computes
  std::string recompute{};     // none, all or auto; empty: as the strategy says, or auto with a limit
  std::string memory_limit{};  // that a rank may hold, as of parse_size(); empty: none
  static constexpr auto fields = std::tuple{field("gradient-chunks", &ScheduleChanges::gradient_chunks),
                                            field("no-late-updates", &ScheduleChanges::no_late_updates),
                                            field("halves", &ScheduleChanges::halves),
                                            field("replicate", &ScheduleChanges::replicate),
                                            field("recompute", &ScheduleChanges::recompute),
                                            field("memory-limit", &ScheduleChanges::memory_limit)};
};

inline constexpr const char* recompute_help =
    "Tensors that the forward pass makes and does not keep, but makes again for the backward pass: none, all "
    "(that are read near where they are made), or auto (as few as the memory limit allows); default: as the "
    "strategy says";
inline constexpr const char* plan_recompute_help =
    "Where that takes less, by simulation, than a plan that fits: compute layers again to keep to the memory";
inline constexpr const char* plan_objective_help =
    "What a plan is to make least: costs (of computing and messages, added up; default), or simulated (the "
    "time "
    "of a simulated iteration, of the cheapest plans, the built-in strategies and what a search finds)";
inline constexpr const char* memory_limit_help =
    "What a rank may hold, such as 2GiB: compute layers again where they would not fit";

// Throws UserError naming what was set ("--replicate" as an option) where its value does not fit.
// What `recompute` = auto asks for is not done here: see memory_limit_of().
void apply(const ScheduleChanges& changes, const Network& network, Strategy& strategy, Spelling spelled);

// The memory that layers are to be computed again for; nothing: no limit was set.
std::optional<Bytes> memory_limit_of(const ScheduleChanges& changes, Spelling spelled);

}  // namespace cortado
