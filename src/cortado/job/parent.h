#pragma once

#include <string>
#include <vector>

#include "cortado/job/keeping.h"
#include "cortado/job/start.h"

namespace cortado {

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
