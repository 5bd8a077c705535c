#include "cortado/comm/mpi/link_rate.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <vector>

#include "cortado/base/activity.h"
#include "cortado/comm/mpi/calls.h"

namespace cortado {

double link_rate(MPI_Comm comm) {
  using Clock = std::chrono::steady_clock;
  const ActivityScope waiting("the measuring of links");
  constexpr int messages = 8, bytes = 1 << 16;
  constexpr int first = 2;  // what comes before may lie in buffers on the way, which pass it on at once
  int rank = 0, size = 1;
  check_mpi(MPI_Comm_rank(comm, &rank));
  check_mpi(MPI_Comm_size(comm, &size));
  std::vector<std::byte> mine(size_t{messages} * bytes), arrived(mine.size());
  std::array<MPI_Request, messages> sends{}, receives{};
  for (int i = 0; i < messages; ++i)
    check_mpi(MPI_Irecv(arrived.data() + i * bytes, bytes, MPI_BYTE, (rank + size - 1) % size, 0, comm,
                        &receives[static_cast<size_t>(i)]));
  MPI_Request barrier = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(comm, &barrier));
  wait_for(barrier);
  for (int i = 0; i < messages; ++i)
    check_mpi(MPI_Isend(mine.data() + i * bytes, bytes, MPI_BYTE, (rank + 1) % size, 0, comm,
                        &sends[static_cast<size_t>(i)]));
  Clock::time_point begin;
  for (size_t i = 0; i < messages; ++i) {
    wait_for(receives[i]);
    if (i + 1 == first) begin = Clock::now();
  }
  const std::chrono::duration<double> took = Clock::now() - begin;
  for (MPI_Request& send : sends) wait_for(send);
  double rate = (messages - first) * bytes / std::max(took.count(), 1e-9), least = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallreduce(&rate, &least, 1, MPI_DOUBLE, MPI_MIN, comm, &request));
  wait_for(request);
  return least;
}

}  // namespace cortado
