#include "cortado/parallel/schedule_changes.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

void apply(const ScheduleChanges& changes, const Network& network, Strategy& strategy, Spelling spelled) {
  // Names every member: with one more, this does not compile until it is applied, too.
  const auto& [gradient_chunks, no_late_updates, halves, replicate] = changes;
  if (!gradient_chunks.empty())
    strategy.schedule.chunks = parse_chunks(gradient_chunks, spelled("gradient-chunks"));
  if (no_late_updates) strategy.schedule.late_updates = false;
  if (halves) strategy.schedule.halves = true;
  for (const std::string& layers : replicate) {
    try {
      set_sync(strategy, network, layers, GradientSync::replicate);
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}: {}", spelled("replicate"), error.what()));
    }
  }
}

}  // namespace cortado
