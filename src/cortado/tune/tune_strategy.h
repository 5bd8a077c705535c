#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cortado/base/units.h"
#include "cortado/parallel/strategy.h"

namespace cortado {

struct TunedStrategy {
  Strategy strategy;
  Seconds seconds, before;  // of an iteration under it, and under the strategy that the search began with
  int tried = 0;
  bool ended = true;  // false: `go_on` stopped the search
};

// A change that tuning finds is worth taking where an iteration gets this many times faster: less is within
// the noise of machines.
inline constexpr double worth_changing = 1.03;

inline constexpr double least_gain = 1e-6;  // of the seconds: a smaller one counts as none

// A layer whose cut, or whose way to sum gradients, tuning has changed.
struct TunedLayer {
  std::string layer;
  LayerStrategy before, tuned;
};
// `tuned`: a strategy with a rule for each layer, as tune_strategy() makes them.
std::vector<TunedLayer> tuned_layers(const Network& network, const Strategy& before, const Strategy& tuned);

// The same strategy with one rule for each layer, in the net's order.
Strategy with_all_rules(const Strategy& start, const Network& network);

struct TuneOptions {
  bool cuts = true;               // also try how layers are cut
  bool replicate = true;          // also try GradientSync::replicate; needs ranks that round equally
  std::function<bool()> go_on{};  // asked before each trial; null: to the end
};

// Searches from `start` for a strategy under which an iteration takes less. `seconds`: of an iteration, as a
// simulation of the job, which unlike the planner's Eq. 1 knows what communication is hidden under computing.
// Tries these in turns, until nothing is better:
//   the schedule   all of schedules(); with the best of them, halos by halves
//   the sums       layers whose gradients every replica might compute (Lee et al. 2017, their f), those first
//                  that this spares most bytes
//   the cuts       of one layer with those after it that have no parameters: as its neighbours', as under
//                  each built-in strategy
// Nothing is tried twice, and only what takes less is taken, so the result is never worse than the start.
// Returns the same every time unless `go_on` stops it.
TunedStrategy tune_strategy(const Strategy& start, const Network& network, int ranks,
                            const std::function<Seconds(const Strategy&)>& seconds,
                            const TuneOptions& options = {});

}  // namespace cortado
