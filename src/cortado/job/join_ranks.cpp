#include "cortado/job/join_ranks.h"

#include <cstdlib>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/comm/launched_rank.h"
#include "cortado/comm/mpi.h"
#include "cortado/job/membership.h"

namespace cortado {

std::unique_ptr<Communicator> join_ranks(int ranks_asked) {
  if (!started_by_mpi()) return make_single_communicator();
  const auto stuck = [] {
    fmt::print(stderr, "cortado: error: MPI does not end, {} seconds after the work was done\n",
               seconds_to_end_mpi);
    std::_Exit(static_cast<int>(ExitCode::peer_error));
  };
  std::unique_ptr<Communicator> ranks = make_mpi_communicator(false, stuck);
  if (const JobRank* rank = JobMembership::watched_rank()) ranks_asked = rank->ranks();
  if (ranks_asked > 0 && ranks_asked != ranks->size()) {
    throw UserError(fmt::format("--ranks {}: the launcher started {} ranks; give that number or leave it out",
                                ranks_asked, ranks->size()));
  }
  return ranks;
}

std::string snapshot_of_job(const std::string& asked, int restarts) {
  const JobRank* rank = JobMembership::watched_rank();
  if (rank == nullptr && restarts > 0)
    throw UserError(
        fmt::format("--restarts {}: nobody is there who could start this job again; give the number of ranks "
                    "by --ranks, and the launcher by --launch",
                    restarts));
  return rank != nullptr && !rank->snapshot().empty() ? rank->snapshot() : asked;
}

bool started_again() {
  const JobRank* rank = JobMembership::watched_rank();
  return rank != nullptr && rank->restarts() > 0;
}

}  // namespace cortado
