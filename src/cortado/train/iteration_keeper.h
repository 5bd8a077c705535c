#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cortado/exec/parameters.h"

namespace cortado {

// Keeps what the last update of each parameter replaced. A rank updates one parameter after another, some of
// them only in the next iteration, so what lies in memory is seldom one iteration; with what was replaced, it
// is always there. In memory of the host (docs/explanation/jobs.md).
class IterationKeeper {
 public:
  using Positions = std::map<std::string, int64_t>;
  // What an update changes: a parameter's weights and the solver's history, each of `elements`.
  struct Updated {
    EntryIndex entry{};
    std::vector<const float*> arrays;
    int64_t elements = 0;
  };
  // What a forward pass in training writes.
  struct Written {
    EntryIndex entry{};
    const float* values = nullptr;
    int64_t elements = 0;
  };
  // Iterations are counted as in snapshots: those done. The arrays must outlive it.
  IterationKeeper(int64_t iteration, std::vector<Updated> updated, std::vector<Written> written,
                  Positions positions);

  // The training's thread calls these three. Hold the lock while the update of this iteration (counted from
  // 0) changes the arrays. Once another thread has called hold_still(), before_update() and end_iteration()
  // do not return.
  [[nodiscard]] std::unique_lock<std::mutex> before_update(EntryIndex entry, int64_t iteration);
  // So many iterations have run; `positions`: of their readers. Updates may be late.
  void end_iteration(int64_t done, Positions positions);
  // Every rank has run so many iterations and found them finite.
  void agree(int64_t done);

  // What this rank has whole: the iterations from `first` to `last`.
  struct Held {
    int64_t began = 0;  // where the training did
    int64_t first = 0, last = 0;
    int64_t agreed = 0;
  };
  // Any thread. From now on nothing that is kept changes.
  Held hold_still();
  // After that, any thread; of a held iteration. The array of that number, in memory order; null for a
  // parameter that the training does not change.
  const float* array(EntryIndex entry, int number, int64_t iteration) const;
  const Positions& positions(int64_t iteration) const;

 private:
  struct Slot {
    Updated of;
    std::unique_ptr<float[]> before;  // the arrays, one after the other; null: there was no update
    int64_t done = 0;                 // iterations that are in the arrays
  };
  struct End {
    int64_t done = -1;
    Positions positions;
    std::vector<std::vector<float>> written;
  };
  const End& end_of(int64_t iteration) const { return ends_[static_cast<size_t>(iteration % 2)]; }

  const int64_t began_;
  std::map<EntryIndex, Slot> slots_;
  std::vector<Written> written_;
  std::array<End, 2> ends_;  // of the last two iterations
  int64_t agreed_;
  std::mutex changing_;
  std::condition_variable moving_;
  bool still_ = false;
};

}  // namespace cortado
