#include "cortado/job/start_watch.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

#include "cortado/job/wire.h"

namespace cortado {
namespace {

// A rank that has not come though all others have: until it is given up, or longer where all took long. A
// host of which no rank has come, and which does not answer, may be out of reach for a while.
constexpr Moment late{5000};

}  // namespace

void StartWatch::came(Moment now) {
  last_arrival_ = now;
  ++arrived_;
}

bool StartWatch::gives_up_last_rank(const Peers& peers, Moment now) const {
  const Moment waited = now - last_arrival_;
  if (waited <= std::max(late, 3 * last_arrival_)) return false;
  const std::vector<std::string> silent = silent_hosts(start_.launcher, peers);
  return silent.empty() || waited > std::chrono::seconds(start_.peer_seconds) || silent_hosts_answer();
}

std::optional<Failure> StartWatch::find_failure(const Peers& peers, Moment now,
                                                std::optional<LauncherEnd> launcher) {
  if (!probe_ && (launcher || now - last_arrival_ > late))
    probe_.emplace(silent_hosts(start_.launcher, peers), port_);
  std::string what;
  std::string hint;
  if (arrived_ == 0) hint = fmt::format("; a launcher must hand the variable {} to the ranks", job_variable);
  if (launcher && now - launcher->when > launcher_suspicion)
    what = fmt::format("the launcher ended with exit code {}", launcher->code);
  else if (now > std::chrono::seconds(start_.seconds_to_start))
    what = fmt::format("{} seconds have passed", start_.seconds_to_start);
  else if (arrived_ == start_.ranks - 1 && arrived_ > 0 && gives_up_last_rank(peers, now))
    what = "a rank did not start, though all others have";
  if (what.empty()) return {};
  return Failure{
      .text = fmt::format("{}: {}{}", what, missing_ranks(start_.launcher, peers, start_.ranks), hint),
      .of_launcher = true};
}

StartWatch::Hosts StartWatch::hosts_without_ranks(const Peers& peers) const {
  const std::vector<std::string> without = silent_hosts(start_.launcher, peers);
  if (silent_hosts_answer() && without != start_.silent_hosts) return {.silent = without};
  return {.lost = without};
}

}  // namespace cortado
