#include "cortado/comm/mpi.h"

#include <mpi.h>
#include <string>

namespace cortado {

bool built_with_mpi() { return true; }

std::string mpi_launcher() { return CORTADO_MPI_LAUNCHER; }

void abort_mpi_job(int code) {
  int begun = 0, ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  if (begun != 0 && ended == 0) MPI_Abort(MPI_COMM_WORLD, code);
}

}  // namespace cortado
