#include "cortado/plan/limited_search.h"

#include <algorithm>
#include <cmath>

#include "cortado/base/error.h"
#include "cortado/plan/marginals.h"
#include "cortado/plan/multiplier.h"
#include "cortado/plan/pareto.h"

namespace cortado::plan {
namespace {

class LimitedSearch {
 public:
  LimitedSearch(const CostGraph& graph, Bytes limit, const LimitedSearchOptions& options)
      : limit_(limit), options_(options), search_(graph, options.search) {}

  LimitedOptimum run() {
    best_ = search_.fewest_bytes();
    result_.fits = best_.bytes <= limit_;
    result_.proven = !result_.fits;  // nothing fits: nothing is faster
    result_.lower_bound = {best_.seconds};
    const FrontierPoint fastest = search_.least_seconds();
    if (result_.fits && fastest.bytes <= limit_) {
      best_ = fastest;
      result_.proven = true;
    } else if (result_.fits) {
      find_multiplier(fastest);
      for (const size_t set_limit : {size_t{8}, size_t{64}, size_t{512}, size_t{0}})
        if (!result_.proven) improve(set_limit);
    }
    if (result_.proven) result_.lower_bound = {best_.seconds};
    best_ = search_.original(best_);
    result_.assignment = best_.assignment;
    result_.seconds = {best_.seconds};
    result_.bytes = best_.bytes;
    result_.searches = search_.searches();
    return result_;
  }

 private:
  // Narrows two corners of the frontier, one that fits and one that does not, until they are neighbours.
  void find_multiplier(FrontierPoint larger) {
    FrontierPoint fitting = best_;
    result_.lower_bound = {larger.seconds};
    while (fitting.seconds > larger.seconds) {
      const FrontierPoint middle = search_.between(fitting, larger, multiplier_);
      const auto bytes = [](const FrontierPoint& point) { return static_cast<double>(point.bytes.count); };
      const double cost = middle.seconds + multiplier_ * bytes(middle);
      result_.lower_bound =
          std::max(result_.lower_bound, Seconds{cost - multiplier_ * static_cast<double>(limit_.count)});
      if (middle.bytes <= limit_ && middle.seconds < best_.seconds) best_ = middle;
      const double known = fitting.seconds + multiplier_ * bytes(fitting);
      if (cost >= known - 1e-11 * std::abs(known)) return;
      (middle.bytes <= limit_ ? fitting : larger) = middle;
    }
    // An assignment that fits is as fast as the fastest of all.
    result_.proven = true;
  }

  // Takes out what cannot improve on the best assignment known, and searches the rest.
  void improve(size_t set_limit) {
    const CostGraph& graph = search_.start().pruned.graph;
    double error = 0;
    const CostGraph bound = with_multiplier(graph, search_.start().quantum, multiplier_, error);
    error *= 4;  // several such sums are compared
    const EliminationOrder order = checked_order(bound, {options_.search.table_limit.count / 3});
    const Elimination elimination(bound, order.vertices, true);
    const Marginals marginals = marginals_of(elimination);
    const double threshold = best_.seconds + multiplier_ * static_cast<double>(limit_.count) + error;
    std::vector<std::vector<int>> kept;
    for (const std::vector<double>& costs : marginals.vertices) {
      std::vector<int>& left = kept.emplace_back();
      for (size_t a = 0; a < costs.size(); ++a)
        if (costs[a] <= threshold) left.push_back(static_cast<int>(a));
    }
    const CostGraph rest = restricted(graph, kept), rest_bound = restricted(bound, kept);
    const ParetoResult found = pareto_search({.graph = rest,
                                              .bound = rest_bound,
                                              .multiplier = multiplier_,
                                              .error = error,
                                              .limit = limit_,
                                              .best_seconds = best_.seconds,
                                              .table_limit = options_.search.table_limit,
                                              .most_points = options_.most_points,
                                              .set_limit = set_limit});
    result_.points += found.points;
    result_.proven = found.complete;
    if (!found.better) return;
    std::vector<int> assignment(kept.size());
    for (size_t v = 0; v < kept.size(); ++v) assignment[v] = kept[v][found.better->assignment[v]];
    best_ = search_.point(std::move(assignment));
    ensure(best_.seconds == found.better->seconds && best_.bytes == found.better->bytes,
           "an assignment costs what its pair says");
  }

  Bytes limit_;
  const LimitedSearchOptions& options_;
  Multipliers search_;
  FrontierPoint best_;
  double multiplier_ = 0;
  LimitedOptimum result_;
};

}  // namespace

LimitedOptimum search_within(const CostGraph& graph, Bytes limit, const LimitedSearchOptions& options) {
  return LimitedSearch(graph, limit, options).run();
}

}  // namespace cortado::plan
