#pragma once

#include "cortado/base/rank_state.h"
#include "cortado/train/stop_flags.h"
#include "cortado/train/trainer.h"

namespace cortado {

// Trains as Trainer::run() does. What this rank keeps of the training is there for `watcher`, also when the
// other ranks are gone.
bool run_watched(Trainer& trainer, StopFlags& flags, RankStateWatcher& watcher);

}  // namespace cortado
