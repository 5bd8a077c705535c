#include "cortado/plan/cheapest.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/plan/frontier.h"
#include "cortado/plan/limited_search.h"
#include "cortado/plan/tradeoff.h"

namespace cortado::plan {
namespace {

class CheapestSearch {
 public:
  explicit CheapestSearch(const LimitedProblem& problem) : problem_(problem) {}

  Cheapest run() {
    const Optimum optimum = search(problem_.graph);
    best_ = {.assignment = optimum.assignment,
             .seconds = {optimum.seconds},
             .memory = least_ = problem_.peak(optimum.assignment),
             .proven = optimum.proven,
             .unlimited = {optimum.seconds},
             .lower_bound = {optimum.seconds},
             .search = optimum.statistics};
    if (problem_.limit.count == 0 || best_.memory <= problem_.limit) return best_;
    best_.limited = true;
    search_exactly();
    if (!best_.proven) narrow(Tradeoffs(problem_.graph, problem_.held()), optimum.assignment);
    if (!found_) throw NothingFits(least_, problem_.limit);
    best_.proven = best_.seconds <= best_.lower_bound;
    return best_;
  }

 private:
  // Whether it fits; takes it where it is the cheapest so far.
  bool see(const std::vector<int>& assignment, Seconds seconds) {
    const Bytes memory = problem_.peak(assignment);
    least_ = std::min(least_, memory);
    if (memory > problem_.limit) return false;
    if (!found_ || seconds < best_.seconds) {
      best_.assignment = assignment;
      best_.seconds = seconds;
      best_.memory = memory;
    }
    return found_ = true;
  }

  void search_exactly() {
    best_.proven = false;
    constexpr int64_t most_points = 2'000'000;
    const LimitedOptimum optimum =
        search_within(problem_.graph, problem_.limit, {.most_points = most_points});
    if (optimum.fits) best_.lower_bound = optimum.lower_bound;
    best_.proven = see(optimum.assignment, optimum.seconds) && optimum.proven;
  }

  void narrow(const Tradeoffs& tradeoffs, const std::vector<int>& optimum) {
    Tradeoffs::Point larger = tradeoffs.point(optimum);
    Tradeoffs::Point fitting = tradeoffs.fewest_bytes();
    if (!see(fitting.assignment, {fitting.seconds})) return;
    constexpr int most_searches = 24;
    for (int searches = 0; searches < most_searches && is_tradeoff(fitting, larger); ++searches) {
      const double multiplier = multiplier_between(fitting, larger);
      Tradeoffs::Point middle = tradeoffs.at(multiplier);
      const double cost = middle.seconds + multiplier * middle.bytes;
      // Less a little for what the search rounds.
      best_.lower_bound =
          std::max(best_.lower_bound,
                   Seconds{cost * (1 - 1e-9) - multiplier * static_cast<double>(problem_.limit.count)});
      const bool fits = see(middle.assignment, {middle.seconds});
      if (cost >= (fitting.seconds + multiplier * fitting.bytes) * (1 - 1e-11)) return;
      (fits ? fitting : larger) = std::move(middle);
    }
  }

  const LimitedProblem& problem_;
  Cheapest best_;
  bool found_ = false;
  Bytes least_;  // peak of all that were seen
};

}  // namespace

std::string gibibytes(Bytes bytes) {
  const double mebibytes = static_cast<double>(bytes.count) / (1 << 20);
  if (mebibytes >= 1024) return fmt::format("{:.{}f} GiB", mebibytes / 1024, mebibytes < 10240 ? 2 : 1);
  return fmt::format("{:.{}f} MiB", mebibytes, mebibytes < 10 ? 2 : 0);
}

NothingFits::NothingFits(Bytes needs, Bytes limit)
    : UserError(fmt::format("needs {} on a device that has {}", gibibytes(needs), gibibytes(limit))),
      needs_(needs) {}

Cheapest cheapest_within(const LimitedProblem& problem) { return CheapestSearch(problem).run(); }

}  // namespace cortado::plan
