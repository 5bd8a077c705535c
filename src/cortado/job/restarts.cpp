#include "cortado/job/restarts.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "cortado/base/error.h"
#include "cortado/job/launcher_words.h"

namespace cortado {
namespace {

void print(const std::string& text) {
  std::fflush(stdout);
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\x1b[K");  // of a progress bar that is left
  fmt::print(stderr, "{}\n", text);
}

std::string restart_line(const JobStart& start, const JobEnd& end) {
  const std::string hosts =
      end.lost_hosts.empty() ? "" : fmt::format(" without {}", fmt::join(end.lost_hosts, ", "));
  std::string from = start.snapshot.empty() ? "the beginning" : start.snapshot;
  if (!end.kept.files.empty())
    from = fmt::format("iteration {}, which the ranks that are left have kept", end.kept.iteration);
  std::string line =
      fmt::format("cortado: {}; starting again on {} rank{}{} from {} (restart {} of {})", end.reason,
                  start.ranks, start.ranks == 1 ? "" : "s", hosts, from, start.restarts_done, start.restarts);
  if (!end.kept.why_not.empty())
    line += fmt::format("; the ranks that are left keep no later iteration: {}", end.kept.why_not);
  return line;
}

// Why a job that may be started again is not; empty where no more was asked for.
std::string no_restart_text(const JobStart& start, const JobEnd& end) {
  if (!end.may_restart || start.restarts == 0) return "";
  if (start.restarts_done >= start.restarts)
    return fmt::format("; it was started again {} time{}, as often as --restarts allows", start.restarts_done,
                       start.restarts_done == 1 ? "" : "s");
  const int left = start.ranks - end.lost_ranks;
  if (left < start.min_ranks)
    return fmt::format("; {} rank{} left, fewer than --min-ranks {}", left, left == 1 ? " is" : "s are",
                       start.min_ranks);
  return "; it is not started again: the launcher's command has no list of hosts to take the lost one out of";
}

// Removes what ranks kept before, unless it is still the newest that a training can go on from.
void remove_old(const JobStart& start, const JobEnd& end) {
  if (end.code != 0 && end.snapshot == start.snapshot) return;
  std::vector<std::string> old = start.kept;
  std::erase_if(old, [&](const std::string& file) {
    return std::ranges::find(end.kept.files, file) != end.kept.files.end();
  });
  remove_kept(old);
}

}  // namespace

std::optional<std::vector<std::string>> without_hosts(std::vector<std::string> launcher,
                                                      const std::vector<std::string>& hosts) {
  for (const std::string& host : hosts) {
    const auto names = [&](const std::string& entry) { return entry.substr(0, entry.find(':')) == host; };
    bool found = false;
    for (size_t i = 0; i + 1 < launcher.size(); ++i) {
      if (!is_host_list(launcher[i])) continue;
      std::vector<std::string> entries = split_list_of_hosts(launcher[i + 1]);
      found |= std::erase_if(entries, names) > 0;
      if (entries.empty()) return std::nullopt;
      launcher[i + 1] = fmt::format("{}", fmt::join(entries, ","));
    }
    if (!found) return std::nullopt;
  }
  return launcher;
}

std::optional<JobStart> next_start(JobStart start, const JobEnd& end) {
  if (!end.may_restart || start.restarts_done >= start.restarts) return std::nullopt;
  const auto launcher = without_hosts(start.launcher, end.lost_hosts);
  start.ranks -= end.lost_ranks;
  if (!launcher || start.ranks < start.min_ranks) return std::nullopt;
  start.launcher = *launcher;
  if (end.snapshot != start.snapshot) start.kept = end.kept.files;
  start.snapshot = end.snapshot;
  start.trained |= end.trained;
  start.silent_hosts = end.silent_hosts;
  std::erase_if(start.hosts, [&](const HostRanks& host) {
    return std::ranges::find(end.lost_hosts, host.host) != end.lost_hosts.end();
  });
  start.wants_hosts = end.wants_hosts && start.hosts_file->hosts() != start.hosts;
  ++start.restarts_done;
  return start;
}

JobStart moved_start(JobStart start, const JobEnd& end) {
  start.hosts = start.hosts_file->hosts();
  start.launcher = with_hosts(start.launcher, start.hosts).value();
  start.ranks = ranks_on(start.hosts);
  start.snapshot = end.snapshot;
  start.kept.clear();
  start.trained |= end.trained;
  start.silent_hosts.clear();
  start.wants_hosts = false;
  ++start.moves_done;
  return start;
}

int run_job(JobStart start) {
  if (start.min_ranks > start.ranks)
    throw UserError(fmt::format("--min-ranks {}: the job has {} rank{}; give at most that many",
                                start.min_ranks, start.ranks, start.ranks == 1 ? "" : "s"));
  while (true) {
    const JobEnd end = watch_job(start);
    remove_old(start, end);
    if (end.moves) {
      start = moved_start(std::move(start), end);
      print(fmt::format("cortado: the hosts are {} by now; going on on {} rank{} from {}",
                        hosts_text(start.hosts), start.ranks, start.ranks == 1 ? "" : "s", start.snapshot));
      continue;
    }
    std::optional<JobStart> next = next_start(start, end);
    if (!next) {
      if (!end.message.empty())
        print(fmt::format("{}cortado: error: {}{}", end.launcher_said, end.message,
                          no_restart_text(start, end)));
      return end.code;
    }
    start = std::move(*next);
    print(restart_line(start, end));
  }
}

}  // namespace cortado
