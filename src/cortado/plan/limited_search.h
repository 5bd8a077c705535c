#pragma once

#include <cstdint>
#include <vector>

#include "cortado/plan/search.h"

namespace cortado::plan {

struct LimitedSearchOptions {
  SearchOptions search;
  int64_t most_points = 20'000'000;  // pairs of seconds and bytes made before a proof is given up
};

// What search_within found.
struct LimitedOptimum {
  bool fits = false;            // some assignment is within the limit
  std::vector<int> assignment;  // the best one that fits; when nothing fits, one of fewest bytes
  Seconds seconds;
  Bytes bytes;
  bool proven = false;  // nothing within the limit is faster
  Seconds lower_bound;  // of the seconds of what fits; with `proven` the seconds themselves
  Seconds gap() const { return seconds - lower_bound; }
  int searches = 0;
  int64_t points = 0;
};

// The least seconds of all assignments that have at most `limit` bytes.
//
// A multiplier m >= 0 bounds them from below: min over all of (seconds + m * bytes) - m * limit. The best
// multiplier is found by searches between a corner of the frontier that is too large and one that fits. Where
// that leaves a gap to the best assignment known, candidates go whose min-marginals under m exceed what is
// known, and the rest is eliminated with *sets* of pairs (seconds, bytes) in place of numbers: those that no
// other pair beats in both, and that under m, with the least that everything outside can cost, could still
// improve on what is known. So the result is exact. When that takes more pairs than the options allow, the
// best assignment met is given with `proven` false and the gap. Throws as search does.
LimitedOptimum search_within(const CostGraph& graph, Bytes limit, const LimitedSearchOptions& options = {});

}  // namespace cortado::plan
