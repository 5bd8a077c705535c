#pragma once

#include <mpi.h>

namespace cortado {

// Bytes a second that reach a rank from the one before it while all send at once: the least of all ranks, the
// same number on each. All ranks call it together; it takes as long as a link takes for half a MiB.
double link_rate(MPI_Comm comm);

}  // namespace cortado
