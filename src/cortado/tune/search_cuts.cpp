#include "cortado/tune/search_cuts.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "cortado/tune/cut_bound.h"

namespace cortado {
namespace {

constexpr double rounding = 1e-12;         // relative: sums in another order
constexpr int looked_at_for_a_trial = 50;  // states, at most, for each strategy that may be simulated

class CutSearch {
 public:
  CutSearch(const Strategy& start, const Network& network, const std::vector<CutChoice>& choices,
            const StrategyCosts& costs, const CutSearchOptions& options)
      : network_(network),
        choices_(choices),
        costs_(costs),
        options_(options),
        start_(start),
        bound_(start, network, choices, costs, options.most_tried) {
    best_.strategy = start;
    best_.seconds = best_.before = costs.iteration(start);
    best_.tried = 1;
  }

  FoundCuts run() {
    open_.push({.bound = bound_.of({}), .ways = {}});
    best_.lower_bound = {std::numeric_limits<double>::infinity()};
    const int64_t most_states = int64_t{looked_at_for_a_trial} * options_.most_tried;
    for (int64_t states = 0; !open_.empty(); ++states) {
      const State state = open_.top();
      if (state.bound >= best_.seconds.count * (1 - rounding)) break;
      if (best_.tried >= options_.most_tried || states >= most_states) {
        best_.lower_bound = {state.bound};
        break;
      }
      open_.pop();
      if (state.ways.size() == choices_.size())
        try_out(state);
      else
        extend(state);
    }
    best_.lower_bound = std::min(best_.lower_bound, best_.seconds);
    return std::move(best_);
  }

 private:
  // The first choices, in order.
  struct State {
    double bound = 0;  // seconds, of all strategies with these choices
    std::vector<size_t> ways;
    bool operator<(const State& other) const {  // of equal ones those that are nearer to an end come first
      return bound != other.bound ? bound > other.bound : ways.size() < other.ways.size();
    }
  };

  void extend(const State& state) {
    for (size_t way = 0; way < choices_[state.ways.size()].ways.size(); ++way) {
      State more{0, state.ways};
      more.ways.push_back(way);
      more.bound = bound_.of(more.ways);
      if (more.bound < best_.seconds.count * (1 - rounding)) open_.push(std::move(more));
    }
  }

  void try_out(const State& state) {
    Strategy strategy = with_ways(start_, network_, choices_, state.ways);
    if (strategy == start_) return;  // known
    const Seconds seconds = costs_.iteration(strategy);
    ++best_.tried;
    if (!(seconds < best_.seconds)) return;
    best_.seconds = seconds;
    best_.strategy = std::move(strategy);
  }

  const Network& network_;
  const std::vector<CutChoice>& choices_;
  const StrategyCosts& costs_;
  const CutSearchOptions& options_;
  const Strategy& start_;
  const CutBound bound_;
  std::priority_queue<State> open_;
  FoundCuts best_;
};

}  // namespace

FoundCuts search_cuts(const Strategy& start, const Network& network, const std::vector<CutChoice>& choices,
                      const StrategyCosts& costs, const CutSearchOptions& options) {
  return CutSearch(start, network, choices, costs, options).run();
}

}  // namespace cortado
