#pragma once

#include <functional>
#include <string>

#include "cortado/base/error.h"
#include "cortado/plan/search.h"

namespace cortado::plan {

// Nothing that the search found fits in a device's memory.
class NothingFits : public UserError {
 public:
  NothingFits(Bytes needs, Bytes limit);
  Bytes needs() const { return needs_; }  // the least peak that was found

 private:
  Bytes needs_;
};

// A graph whose cheapest assignment within a limit of memory is wanted.
struct LimitedProblem {
  const CostGraph& graph;
  // The same graph with bytes in place of seconds: what an assignment holds at least, by vertex and edge.
  // Called only where the cheapest of all does not fit.
  std::function<const CostGraph&()> held;
  // The most bytes that are held at a time under an assignment; at least `held` and the graph's own bytes.
  std::function<Bytes(const std::vector<int>&)> peak;
  Bytes limit;  // 0: none
};

struct Cheapest {
  std::vector<int> assignment;
  Seconds seconds;
  Bytes memory;             // peak of the assignment
  bool limited = false;     // the cheapest of all does not fit
  bool proven = false;      // none that fits is cheaper
  Seconds unlimited;        // the seconds of the cheapest of all
  Seconds lower_bound;      // of the seconds of all that fit; with `proven` the seconds themselves
  SearchStatistics search;  // of the search without a limit
};

// The cheapest assignment whose peak is within the limit. First the cheapest of all; then search_within, by
// the bytes of vertices: where the peak of what that finds is within the limit, it is the cheapest that fits.
// Else optima of seconds + multiplier * held, the multiplier narrowed down between one that fits and one that
// does not: they may miss the cheapest, but bound how cheap it could be. Throws NothingFits, or as search
// does.
Cheapest cheapest_within(const LimitedProblem& problem);

// "15.9 GiB", "2.25 GiB", "204 MiB".
std::string gibibytes(Bytes bytes);

}  // namespace cortado::plan
