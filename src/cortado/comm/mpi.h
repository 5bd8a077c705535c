#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cortado/comm/communicator.h"

namespace cortado {

// The MPI that this build has (comm/mpi) or has not (comm/no_mpi).
bool built_with_mpi();
// The command that starts ranks, to be followed by "-n N command"; "" without MPI.
std::string mpi_launcher();
// Initializes MPI; the communicator and its transmissions own it, and the last of them ends it. Once a
// process. Throws UserError without MPI, with one that allows no threads, or under the launcher of another
// MPI. `apart`, for tests: ranks of one host communicate as ranks of several hosts do. `stuck` is
// called on a thread of its own where MPI does not end, `seconds_to_end_mpi` after the work was done.
inline constexpr int seconds_to_end_mpi = 10;
std::unique_ptr<Communicator> make_mpi_communicator(bool apart = false, std::function<void()> stuck = {});
// Ends all ranks of the job with this exit code, if MPI runs.
void abort_mpi_job(int code);

}  // namespace cortado
