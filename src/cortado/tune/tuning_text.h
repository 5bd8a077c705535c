#pragma once

#include <string>

#include "cortado/tune/tune_strategy.h"

namespace cortado {

// Says what a search of `taken` seconds found: times, schedules, and a line for each layer that it changed.
// `before`: what it began with. `limit`: what the user calls the limit of its time.
std::string tuning_text(const Network& network, const Strategy& before, const TunedStrategy& tuned,
                        double taken, const std::string& limit);

}  // namespace cortado
