#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "cortado/program/program.h"

namespace cortado {

// What recomputation would save and cost in the program of one rank, and the cheapest choice under a limit
// of bytes.
//
// The works in order are cut into segments. A segment drops all tensors that it alone reads, and makes them
// again before its own backward pass (as sqrt(n) checkpointing does: Chen et al. 2016, "Training deep nets
// with sublinear memory cost"). For a chain of layers that is every choice there is. The bytes are those that
// live at one step by the lives of the program's own buffers; what an arena needs beyond that is known when
// the choice is compiled.
class RecomputeModel {
 public:
  // `program`: without recomputation and halves. `may_drop`: says of each work whether its outputs may be
  // dropped. `forward`: seconds of each work's forward pass.
  RecomputeModel(const Program& program, const IndexedVector<WorkIndex, bool>& may_drop,
                 const IndexedVector<WorkIndex, Seconds>& forward);

  struct Choice {
    std::vector<WorkIndex> works;  // that run again
    Seconds added;                 // that these take
    bool cheapest = true;          // of all segmentations; false: too many had to be compared
  };
  // Nothing where none keeps to `limit` at every step.
  std::optional<Choice> cheapest(Bytes limit) const;
  // The least limit that some choice keeps to, to about a thousandth.
  Bytes least() const;
  Bytes most() const { return {most_}; }  // lives at one step without recomputation

  // Every choice that keeps to `limit` takes at least so long: what lives at the barrier must be dropped, at
  // the best price a byte.
  Seconds bound(Bytes limit) const;
  bool is_chain() const;  // each work is read by the next one alone

 private:
  // What a work would drop, and the works between which these tensors are read.
  struct Item {
    bool may_drop = false;
    int low = 0, high = 0;      // the first and last work that touch them in the forward pass
    int64_t bytes = 0;          // of those that the backward pass reads
    double seconds = 0;         // of the forward pass
    std::vector<int> inputs{};  // works that make what it reads
  };
  struct Segment {
    std::vector<int> works;  // that run again
    int64_t saved = 0;       // while earlier layers compute, and later ones
    int64_t peak = 0;        // bytes that live at most, before what earlier segments save
    double seconds = 0;
  };
  struct State;

  void find_lives();
  void find_items(const IndexedVector<WorkIndex, bool>& may_drop,
                  const IndexedVector<WorkIndex, Seconds>& forward);
  void follow_movements();
  Segment segment(int begin, int end) const;
  int64_t kept_longer(const Segment& segment, StepIndex until) const;
  int64_t forward_peak(const Segment& segment, int begin, int end) const;
  int64_t backward_peak(int begin, int end) const;
  int64_t repeat_peak(const Segment& segment, int64_t longer, StepIndex at) const;
  StepIndex backward_begin(int end) const;
  std::vector<int> needed(int begin, int end) const;

  const Program& program_;
  std::vector<Item> items_;                                 // per work
  IndexedVector<StepIndex, int64_t> live_;                  // bytes at each step
  IndexedVector<StepIndex, int> work_of_;                   // that a step counts for; backward
  std::vector<std::vector<StepIndex>> forward_;             // per work
  std::vector<std::vector<BufferIndex>> outputs_, inputs_;  // per work, in memory of the arena
  int64_t most_ = 0;
  std::vector<std::vector<Segment>> segments_;  // [begin][end - begin - 1]
};

}  // namespace cortado
