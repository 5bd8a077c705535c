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
  return fmt::format("cortado: {}; starting again on {} rank{}{} from {} (restart {} of {})", end.reason,
                     start.ranks, start.ranks == 1 ? "" : "s", hosts,
                     start.snapshot.empty() ? "the beginning" : start.snapshot, start.restarts_done,
                     start.restarts);
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
  start.snapshot = end.snapshot;
  start.trained |= end.trained;
  ++start.restarts_done;
  return start;
}

int run_job(JobStart start) {
  if (start.min_ranks > start.ranks)
    throw UserError(fmt::format("--min-ranks {}: the job has {} rank{}; give at most that many",
                                start.min_ranks, start.ranks, start.ranks == 1 ? "" : "s"));
  while (true) {
    const JobEnd end = watch_job(start);
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
