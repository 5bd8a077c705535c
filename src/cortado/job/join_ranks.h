#pragma once

#include <memory>

#include "cortado/comm/communicator.h"

namespace cortado {

// Returns the ranks of this process's job; a single one outside a job. Throws UserError when --ranks (0: not
// given) is not the job's size.
std::unique_ptr<Communicator> join_ranks(int ranks_asked);

}  // namespace cortado
