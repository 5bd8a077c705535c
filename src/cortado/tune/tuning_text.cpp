#include "cortado/tune/tuning_text.h"

#include <fmt/format.h>

namespace cortado {

std::string tuning_text(const Network& network, const Strategy& before, const TunedStrategy& tuned,
                        double taken, const std::string& limit) {
  std::string text = fmt::format(
      "tuned: {:.3f} ms in place of {:.3f} ms; {} in place of {}; best of {} simulated in {:.1f} s{}\n",
      1e3 * tuned.seconds.count, 1e3 * tuned.before.count, schedule_text(tuned.strategy.schedule),
      schedule_text(before.schedule), tuned.tried, taken,
      tuned.ended ? "" : fmt::format(", then time was up ({})", limit));
  for (const auto& [layer, was, is] : tuned_layers(network, before, tuned.strategy))
    text += fmt::format("  {}: {}, {} in place of {}, {}\n", layer, is.config.text(), name_of(is.sync),
                        was.config.text(), name_of(was.sync));
  return text;
}

}  // namespace cortado
