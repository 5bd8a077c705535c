#include "cortado/app/train_in_job.h"

#include "cortado/base/error.h"
#include "cortado/job/membership.h"

namespace cortado {
namespace {

class TrainerState : public RankState {
 public:
  explicit TrainerState(const Trainer& trainer) : trainer_(trainer) {}
  Held hold_still() override {
    const std::optional<IterationKeeper::Held> held = trainer_.hold_still();
    if (!held) return {.why_not = trainer_.why_not_kept()};
    return {"", held->began, held->first, held->last, held->agreed};
  }
  std::string write(int64_t iteration, const std::vector<int>& ranks) override {
    return trainer_.write_kept(iteration, ranks);
  }

 private:
  const Trainer& trainer_;
};

bool train_and_keep(Trainer& trainer, StopFlags& flags, JobRank& rank) {
  trainer.keep_iterations();
  TrainerState state(trainer);
  rank.offer(&state);
  try {
    const bool ended = trainer.run(flags);
    rank.offer(nullptr);
    return ended;
  } catch (const PeerError& error) {
    rank.miss_others(error.what());
    throw;
  } catch (...) {
    rank.offer(nullptr);
    throw;
  }
}

}  // namespace

bool train_in_job(Trainer& trainer, Communicator& job, StopFlags& flags, bool may_restart) {
  JobRank* rank = JobMembership::watched_rank();
  if (rank == nullptr) return trainer.run(flags);
  const bool keeps = may_restart && job.size() > 1;
  const bool ended = keeps ? train_and_keep(trainer, flags, *rank) : trainer.run(flags);
  if (!ended) rank->report_stopped();
  return ended;
}

}  // namespace cortado
