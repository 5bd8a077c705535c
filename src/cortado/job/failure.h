#pragma once

#include <string>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/job/peer.h"

namespace cortado {

// Why a job stops.
struct Failure {
  std::string text{};  // empty: nothing is printed
  int code = static_cast<int>(ExitCode::peer_error);
  std::string who{};          // the rank that reported it
  std::string more{};         // what else to print
  int missed_others = -1;     // the rank that reported it, where another may be the reason
  bool of_launcher = false;   // print what the launcher said of it, too
  bool says_progress = true;  // print how far the job was and from where to resume
  Moment when{};
};

// The failure in words: what happened, where, how far the job was.
std::string reason_of(const Failure& failure, const Peers& peers);

// The same with what to do. `snapshot`: the newest; may be empty.
std::string message_of(const Failure& failure, const Peers& peers, const std::string& snapshot);

// Says that `peer`, and others whose hosts have not answered for about so long, cannot be reached.
std::string cannot_be_reached(const Peer& peer, const Peers& peers, Moment now, int seconds);

// The hosts that the launcher's command names and from which no rank has come.
std::vector<std::string> silent_hosts(const std::vector<std::string>& launcher, const Peers& peers);

// Whether `peer` runs on a host that has not answered for about so long.
bool is_out_of_reach(const Peer& peer, Moment now, int seconds);

// `peer`'s host as the launcher's command names it, else by its own name.
std::string host_as_named(const std::vector<std::string>& launcher, const Peer& peer);

// "2 of 4 ranks have started (launcher 'mpiexec'): ..." with the ranks that have not, and the hosts named to
// the launcher from which none came.
std::string missing_ranks(const std::vector<std::string>& launcher, const Peers& peers, int ranks);

}  // namespace cortado
