#include "cortado/comm/launched_rank.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace cortado {
namespace {

std::optional<int> number(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const char* end = text + std::strlen(text);
  if (std::from_chars(text, end, value).ptr != end || end == text) return std::nullopt;
  return value;
}

}  // namespace

std::optional<LaunchedRank> launched_rank() {
  struct Variables {
    const char *rank, *size;
  };
  // OpenMPI's mpirun; MPICH, Intel MPI and others; PMIx.
  for (const Variables& names : {Variables{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                 Variables{"PMI_RANK", "PMI_SIZE"}, Variables{"PMIX_RANK", "PMIX_SIZE"}}) {
    if (std::optional<int> rank = number(names.rank))
      return LaunchedRank{*rank, number(names.size).value_or(0)};
  }
  // A batch script has SLURM_PROCID, too, but only a step of several tasks is a job of ranks.
  std::optional<int> rank = number("SLURM_PROCID"), size = number("SLURM_STEP_NUM_TASKS");
  if (rank && size.value_or(0) > 1) return LaunchedRank{*rank, *size};
  return std::nullopt;
}

}  // namespace cortado
