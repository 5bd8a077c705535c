#pragma once

#include <string>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/job/peer.h"

namespace cortado {

// Why a job stops.
struct Failure {
  std::string text{};  // nothing: not to be told
  int code = static_cast<int>(ExitCode::peer_error);
  std::string who{};          // the rank that told it
  std::string more{};         // what else is to be said
  int missed_others = -1;     // the rank that told it, where another may be the reason
  bool of_launcher = false;   // what the launcher said of it is to be told, too
  bool lost_progress = true;  // tell with it how far the job was and from where to resume
  Moment when{};
};

// The whole message. `snapshot`: the newest; may be empty.
std::string message_of(const Failure& failure, const Peers& peers, const std::string& snapshot);

// `peer` and the others whose hosts have not answered for about so long.
std::string cannot_be_reached(const Peer& peer, const Peers& peers, Moment now, int seconds);

// "2 of 4 ranks have started (launcher 'mpiexec'): ..." with the ranks that have not, and the hosts named to
// the launcher from which none came.
std::string missing_ranks(const std::vector<std::string>& launcher, const Peers& peers, int ranks);

}  // namespace cortado
