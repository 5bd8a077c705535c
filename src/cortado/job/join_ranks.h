#pragma once

#include <memory>
#include <string>

#include "cortado/comm/communicator.h"

namespace cortado {

// Returns the ranks of this process's job; a single one outside a job. Throws UserError when --ranks (0: not
// given) is not the job's size.
std::unique_ptr<Communicator> join_ranks(int ranks_asked);

// The snapshot that this job goes on from: the newest of a job that was started again, else the one `asked`
// for. Throws UserError where `restarts` are asked for and nobody watches this rank.
std::string snapshot_of_job(const std::string& asked, int restarts);
// Whether this job was started again.
bool started_again();

}  // namespace cortado
