#pragma once

#include <optional>
#include <string>

#include "cortado/job/peer.h"

namespace cortado {

// A job that goes on no more, in words.
struct Stall {
  std::string what;  // "rank 2 on b (pid 123) has not answered for 60 s"
  std::string more;  // "ranks 0, 1 wait for it in the sum of gradients of layer 'conv3'"; may be empty
};

// Finds ranks whose processes have not answered for `limit` though their hosts can be reached, or that all
// ranks have waited for each other for so long and no message has moved. Ranks that compute, read or measure
// may take what time they want.
std::optional<Stall> find_stall(const Peers& peers, Moment now, Moment limit);

}  // namespace cortado
