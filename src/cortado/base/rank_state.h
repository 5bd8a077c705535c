#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cortado {

// What a rank has of its work, for a job that goes on without ranks that are lost. A thread of JobRank calls
// it, whatever the thread that works is doing.
class RankState {
 public:
  virtual ~RankState() = default;
  // From now on nothing of it changes; the work may stand still from here on. Iterations are counted as those
  // done.
  struct Held {
    std::string why_not;          // not empty: the ranks keep none
    int64_t began = 0;            // the iteration that the work went on from
    int64_t first = 0, last = 0;  // those that this rank has whole
    int64_t agreed = 0;           // all ranks have run so many, and found nothing wrong
  };
  virtual Held hold_still() = 0;
  // Writes what this rank has to write of a held iteration where these ranks are left, and returns the file;
  // empty where that is nothing.
  virtual std::string write(int64_t iteration, const std::vector<int>& ranks) = 0;
};

// Who watches this rank, and may ask for its state when others are gone.
class RankStateWatcher {
 public:
  // What this rank has of its work, which must live until another is offered; null: nothing. Does not return
  // where the one before has been asked for: then this process is about to be ended.
  virtual void offer(RankState* state) = 0;
  // This rank cannot work without others that are gone. Reports that, and waits until this process is ended,
  // perhaps after it was asked for what was offered. Returns only where nothing was offered.
  virtual void miss_others(const std::string& message) = 0;

 protected:
  ~RankStateWatcher() = default;
};

}  // namespace cortado
