#include "cortado/base/error.h"
#include "cortado/comm/mpi.h"

namespace cortado {

bool built_with_mpi() { return false; }
std::string mpi_launcher() { return ""; }

std::unique_ptr<Communicator> make_mpi_communicator(bool, std::function<void()>) {
  throw UserError("this cortado is built without MPI and runs one rank; build it with -DCORTADO_MPI=mpich");
}

void abort_mpi_job(int) {}

}  // namespace cortado
