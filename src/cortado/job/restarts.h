#pragma once

#include <optional>

#include "cortado/job/parent.h"

namespace cortado {

// Starts a job's ranks and watches them (watch_job). Where one or a host is lost, starts the job again on
// what is left, at most `restarts` times, and says so in a line. Where its hosts file names other hosts, goes
// on on them after the next snapshot. Prints the message of the last failure; returns its exit code, 0 where
// there is none. Throws UserError where nothing can be started. Run by a process without other threads.
int run_job(JobStart start);

// How the job is started after such an end; nothing: it is not.
std::optional<JobStart> next_start(JobStart start, const JobEnd& end);

// How the job goes on on the hosts that its file names by now.
JobStart moved_start(JobStart start, const JobEnd& end);

// The launcher's command without these hosts, which its options name (-hosts a,b; --host a:2,b:2; -w a,b).
// Nothing where that leaves none, or where a host is named elsewhere.
std::optional<std::vector<std::string>> without_hosts(std::vector<std::string> launcher,
                                                      const std::vector<std::string>& hosts);

}  // namespace cortado
