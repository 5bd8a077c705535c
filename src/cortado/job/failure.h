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
  bool lost_progress = true;  // print how far the job was and from where to resume
  Moment when{};
};

// The whole message. `snapshot`: the newest; may be empty.
std::string message_of(const Failure& failure, const Peers& peers, const std::string& snapshot);

// Says that `peer`, and others whose hosts have not answered for about so long, cannot be reached.
std::string cannot_be_reached(const Peer& peer, const Peers& peers, Moment now, int seconds);

// "2 of 4 ranks have started (launcher 'mpiexec'): ..." with the ranks that have not, and the hosts named to
// the launcher from which none came.
std::string missing_ranks(const std::vector<std::string>& launcher, const Peers& peers, int ranks);

}  // namespace cortado
