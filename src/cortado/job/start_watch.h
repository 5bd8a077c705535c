#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cortado/job/failure.h"
#include "cortado/job/host_probe.h"
#include "cortado/job/peer.h"
#include "cortado/job/start.h"

namespace cortado {

// Watches a job until all of its ranks have come: finds that some will not, and the hosts that are lost with
// them.
class StartWatch {
 public:
  // `port`: of this process, at which ranks say hello. `start` must outlive the watch.
  StartWatch(const JobStart& start, int port) : start_(start), port_(port) {}

  void came(Moment now);  // a rank has said hello
  int arrived() const { return arrived_; }
  bool all_came() const { return arrived_ == start_.ranks; }

  struct LauncherEnd {
    Moment when;
    int code;
  };
  // Why not all ranks will come; nothing while they may.
  std::optional<Failure> find_failure(const Peers& peers, Moment now, std::optional<LauncherEnd> launcher);

  // After a failure. A host of which no rank came is lost, but one that can be reached is silent until it
  // is so in the next start, too: what should have begun its ranks may have been killed.
  struct Hosts {
    std::vector<std::string> lost, silent;
  };
  Hosts hosts_without_ranks(const Peers& peers) const;

 private:
  bool gives_up_last_rank(const Peers& peers, Moment now) const;
  bool silent_hosts_answer() const { return probe_ && probe_->all_answer(); }

  const JobStart& start_;
  const int port_;
  int arrived_ = 0;
  Moment last_arrival_{};
  std::optional<HostProbe> probe_;  // of hosts of which no rank has come
};

// After the launcher's end, ranks may say for so long what is the reason of it.
constexpr Moment launcher_suspicion{500};

}  // namespace cortado
