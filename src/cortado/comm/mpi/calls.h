#pragma once

#include <mpi.h>

#include "cortado/base/element_type.h"

namespace cortado {

// Throws PeerError with MPI's words unless `code` is MPI_SUCCESS.
void check_mpi(int code);

// Waits for a blocking call's request. MPI's own waits keep their core until the system takes it away, and
// ranks may have more threads than there are cores: the one that is waited for must get one.
void wait_for(MPI_Request& request);

// How MPI takes elements of that type.
MPI_Datatype mpi_type(ElementType type);

// Whether the MPI library says that it takes addresses of a GPU's memory.
bool mpi_reads_device_memory();

}  // namespace cortado
