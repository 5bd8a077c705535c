#include "cortado/train/watched_run.h"

#include "cortado/base/error.h"

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

}  // namespace

bool run_watched(Trainer& trainer, StopFlags& flags, RankStateWatcher& watcher) {
  trainer.keep_iterations();
  TrainerState state(trainer);
  watcher.offer(&state);
  try {
    const bool ended = trainer.run(flags);
    watcher.offer(nullptr);
    return ended;
  } catch (const PeerError& error) {
    watcher.miss_others(error.what());
    throw;
  } catch (...) {
    watcher.offer(nullptr);
    throw;
  }
}

}  // namespace cortado
