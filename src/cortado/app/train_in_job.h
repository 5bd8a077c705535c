#pragma once

#include "cortado/comm/communicator.h"
#include "cortado/train/stop_flags.h"
#include "cortado/train/trainer.h"

namespace cortado {

// Trains as Trainer::run() does. Where a job `may_restart`, what this rank keeps of the training is there for
// the process that watches the ranks, also when the other ranks are gone.
bool train_in_job(Trainer& trainer, Communicator& job, StopFlags& flags, bool may_restart);

}  // namespace cortado
