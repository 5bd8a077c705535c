#pragma once

#include <mpi.h>

namespace cortado {

struct MeasuredLink {
  double bytes_per_second = 0;  // that reach a rank from the one before it while all send at once
  double latency = 0;           // seconds
};

// The least rate and the greatest latency that any rank finds, the same on each. All ranks call it together;
// it takes as long as a link takes for half a MiB.
MeasuredLink measured_link(MPI_Comm comm);

}  // namespace cortado
