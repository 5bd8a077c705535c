#include "cortado/parallel/schedule_changes.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

void apply(const ScheduleChanges& changes, const Network& network, Strategy& strategy) {
  if (!changes.gradient_chunks.empty())
    strategy.schedule.chunks = parse_chunks(changes.gradient_chunks, "--gradient-chunks");
  if (changes.no_late_updates) strategy.schedule.late_updates = false;
  if (changes.halves) strategy.schedule.halves = true;
  for (const std::string& layers : changes.replicate) {
    try {
      set_sync(strategy, network, layers, GradientSync::replicate);
    } catch (const UserError& error) {
      throw UserError(fmt::format("--replicate: {}", error.what()));
    }
  }
}

}  // namespace cortado
