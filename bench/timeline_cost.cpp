// What the Executor's timeline costs, which is always recorded: timeline_cost TRACE.json
// Times the recording of a step (two looks at the clock and what is written down; of a message a lock
// besides) and sets it against the iteration of rank 0 in a trace that `cortado time --trace` has written.
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cortado/program/timeline.h"

namespace cortado {
namespace {

using Clock = std::chrono::steady_clock;

Seconds since(Clock::time_point start) {
  return {std::chrono::duration<double>(Clock::now() - start).count()};
}

constexpr int rounds = 1000, steps = 1000;

// The fastest of many rounds over as many steps as a large net has; seconds for one.
template <typename Record>
double seconds_of(Record&& record) {
  double best = 1;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    for (int step = 0; step < steps; ++step) record(step, start);
    best = std::min(best, since(start).count / steps);
  }
  return best;
}

int run(const char* path) {
  Timeline timeline(steps);
  const double compute = seconds_of([&](int step, Clock::time_point start) {
    TimelineEntry& entry = timeline[static_cast<size_t>(step)];
    entry = {0, Lane::compute, StepIndex(step), since(start), {}};
    entry.end = since(start);
  });
  std::mutex mutex;
  std::vector<Clock::time_point> begun(steps);
  std::vector<std::pair<Clock::time_point, Clock::time_point>> last(steps);
  const double message = seconds_of([&](int step, Clock::time_point start) {
    const auto index = static_cast<size_t>(step);
    begun[index] = Clock::now();
    {
      std::lock_guard lock(mutex);
      last[index] = {begun[index], Clock::now()};
    }
    const auto seconds = [&](Clock::time_point time) {
      return Seconds{std::chrono::duration<double>(time - start).count()};
    };
    timeline[index] = {0, Lane::communication, StepIndex(step), seconds(last[index].first),
                       seconds(last[index].second)};
  });
  int computing = 0, messages = 0;
  double end = 0;
  const auto trace = nlohmann::json::parse(std::ifstream(path));
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X" || event.at("pid") != 0) continue;
    ++(event.at("tid") == 0 ? computing : messages);
    end = std::max(end, 1e-6 * (event.at("ts").get<double>() + event.at("dur").get<double>()));
  }
  const double cost = computing * compute + messages * message;
  fmt::print("a compute step {:.0f} ns, a message {:.0f} ns to record\n", 1e9 * compute, 1e9 * message);
  fmt::print("{} compute steps and {} messages: {:.1f} us of {:.3f} ms, {:.4f} %\n", computing, messages,
             1e6 * cost, 1e3 * end, 100 * cost / end);
  return 0;
}

}  // namespace
}  // namespace cortado

int main(int count, char** words) {
  if (count != 2) {
    fmt::print(stderr, "timeline_cost TRACE.json, of cortado time --trace\n");
    return 2;
  }
  return cortado::run(words[1]);
}
