#include "cortado/exec/timed_runs.h"

#include <algorithm>

namespace cortado {
namespace {

constexpr int least_runs = 2;
constexpr double enough = 0.02;  // seconds of running, all passes together
constexpr double near = 1.5;     // of the least

}  // namespace

void TimedRuns::add(const PassTimes& run) { runs_.push_back(run); }

bool TimedRuns::are_enough() const {
  const auto count = static_cast<int>(runs_.size());
  if (count >= most_) return true;
  if (count < least_runs) return false;
  double spent = 0, least = runs_[0].total().count;
  for (const PassTimes& run : runs_) {
    spent += run.total().count;
    least = std::min(least, run.total().count);
  }
  return spent >= enough && median().total().count <= near * least;
}

PassTimes TimedRuns::median() const {
  PassTimes median;
  std::vector<PassTimes> runs = runs_;
  for (auto pass : {&PassTimes::forward, &PassTimes::backward_weights, &PassTimes::backward}) {
    std::ranges::sort(runs, {}, [&](const PassTimes& run) { return (run.*pass).count; });
    const PassTimes &below = runs[(runs.size() - 1) / 2], &above = runs[runs.size() / 2];
    (median.*pass).count = 0.5 * ((below.*pass).count + (above.*pass).count);
  }
  return median;
}

}  // namespace cortado
