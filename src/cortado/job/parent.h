#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "cortado/job/hosts_file.h"
#include "cortado/job/keeping.h"

namespace cortado {

struct JobStart {
  int ranks = 1;
  std::vector<std::string> launcher;  // "mpiexec", its options; "-n RANKS" and the command follow
  std::vector<std::string> command;   // of every rank: its program, by its whole path, and arguments
  int seconds_to_start = 60;          // until every rank must have said hello
  int stall_seconds = 60;             // until a job that stands still is ended; 0: never
  int peer_seconds = 60;              // until a host that cannot be reached is given up
  std::string listen;                 // the address of this host at which ranks find it; empty: every one
  int restarts = 0;                   // how often the job may be started again
  int min_ranks = 1;                  // on no fewer ranks than these
  std::vector<int> stop_signals{SIGINT, SIGTERM};  // that ask the ranks to end
  int restarts_done = 0;
  HostsWatch* hosts_file = nullptr;       // must outlive the job; null: there is none
  Hosts hosts;                            // of it, on which the job runs
  bool wants_hosts = false;               // it names others by now
  int moves_done = 0;                     // to other hosts
  bool trained = false;                   // one of the starts before has
  std::vector<std::string> silent_hosts;  // JobEnd's of the start before: lost where none comes again
  std::string snapshot;  // that a job which is started again goes on from; empty: as its command says
  std::vector<std::string> kept;  // the files of that, where ranks that were left have written them
};

// How a job ended.
struct JobEnd {
  int code = 0;
  std::string message;        // of the failure, with what the user may do; empty: there is nothing to say
  std::string reason;         // the failure alone
  std::string launcher_said;  // lines of its own about a failure that is its own
  std::string snapshot;       // the newest; empty: none was written
  KeptIteration kept;         // what the ranks that were left have written: then `snapshot` names it
  std::vector<std::string> silent_hosts;  // that can be reached, but of which no rank came
  bool trained = false;                   // a rank has begun with its first iteration
  bool wants_hosts = false;               // JobStart's
  bool moves = false;  // the ranks ended so that the job goes on on the hosts that the file names
  // A rank or a host is gone, or stood still: the job may be started again.
  bool may_restart = false;
  // Hosts that were lost, as the launcher's command names them, and how many ranks they had.
  std::vector<std::string> lost_hosts;
  int lost_ranks = 0;
};

// Starts the ranks and watches them until all have ended. A rank that is gone, or that ends with an error,
// stops the whole job: 3 or the rank's own code, and one message. So does a job that stands still (stall.h),
// and a launcher that is gone. What the ranks print is passed on, without the launcher's own words about an
// end that this process reports. SIGINT, SIGTERM and SIGHUP are passed on. When this process is killed, the
// ranks end by themselves. Once the hosts file names other hosts, the ranks are asked to end after the next
// snapshot. Where the job may be started again, ranks that are left first write what they have
// (keeping.h). Files of `start.kept` are removed once there is a newer snapshot. Throws UserError where
// nothing can be started.
JobEnd watch_job(const JobStart& start);

}  // namespace cortado
