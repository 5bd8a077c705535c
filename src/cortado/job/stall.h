#pragma once

#include <optional>
#include <string>

#include "cortado/job/peer.h"

namespace cortado {

// Why a job no longer moves, in words.
struct Stall {
  std::string what;  // "rank 2 on b (pid 123) has not answered for 60 s"
  std::string more;  // "ranks 0, 1 wait for it in the sum of gradients of layer 'conv3'"; may be empty
};

// Finds ranks whose processes have not answered for `limit` though their hosts can be reached. Finds also
// that all ranks have waited for one another for so long while no message moved. Ranks that compute, read or
// measure may take as long as they want.
std::optional<Stall> find_stall(const Peers& peers, Moment now, Moment limit);

}  // namespace cortado
