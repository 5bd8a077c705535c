#include "cortado/parallel/schedule_changes.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

namespace {

void apply_recompute(const ScheduleChanges& changes, const Network& network, Strategy& strategy,
                     Spelling spelled) {
  const std::string& what = changes.recompute;
  if (what == "none")
    set_recompute(strategy, network, IndexedVector<NodeIndex, bool>(network.nodes().size(), false));
  else if (what == "all")
    set_recompute(strategy, network, recompute_by_segments(network));
  else if (!what.empty() && what != "auto")
    throw UserError(fmt::format("{}: '{}' is not known; use none, all or auto", spelled("recompute"), what));
  memory_limit_of(changes, spelled);
}

}  // namespace

void apply(const ScheduleChanges& changes, const Network& network, Strategy& strategy, Spelling spelled) {
  // Names every member: with one more, this does not compile until it is applied, too.
  const auto& [gradient_chunks, no_late_updates, halves, replicate, recompute, memory_limit] = changes;
  if (!gradient_chunks.empty())
    strategy.schedule.chunks = parse_chunks(gradient_chunks, spelled("gradient-chunks"));
  if (no_late_updates) strategy.schedule.late_updates = false;
  if (halves) strategy.schedule.halves = true;
  apply_recompute(changes, network, strategy, spelled);
  for (const std::string& layers : replicate) {
    try {
      set_sync(strategy, network, layers, GradientSync::replicate);
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}: {}", spelled("replicate"), error.what()));
    }
  }
}

std::optional<Bytes> memory_limit_of(const ScheduleChanges& changes, Spelling spelled) {
  const bool automatic = changes.recompute == "auto";
  if (changes.memory_limit.empty()) {
    if (!automatic) return std::nullopt;
    throw UserError(fmt::format("{} auto: give the memory that a rank may hold, as in {} 2GiB",
                                spelled("recompute"), spelled("memory-limit")));
  }
  if (!automatic && !changes.recompute.empty())
    throw UserError(fmt::format("{}: goes with {} auto alone, not with {}", spelled("memory-limit"),
                                spelled("recompute"), changes.recompute));
  return parse_size(changes.memory_limit, spelled("memory-limit"));
}

}  // namespace cortado
