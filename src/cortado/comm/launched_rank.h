#pragma once

#include <optional>

namespace cortado {

// This process among those that an MPI launcher (or srun) started, by the launcher's environment variables.
struct LaunchedRank {
  int rank = 0;
  int size = 0;  // 0: the launcher does not say
};
// Nothing for a process that no launcher started; MPI is not touched.
std::optional<LaunchedRank> launched_rank();
inline bool started_by_mpi() { return launched_rank().has_value(); }

}  // namespace cortado
