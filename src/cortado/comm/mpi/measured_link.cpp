#include "cortado/comm/mpi/measured_link.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "cortado/base/activity.h"
#include "cortado/base/seconds_since.h"
#include "cortado/comm/mpi/calls.h"

namespace cortado {
namespace {

using Clock = std::chrono::steady_clock;

void barrier(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(comm, &request));
  wait_for(request);
}

// A message for each doubling of the ranks makes a barrier, once all have come to it.
double latency(MPI_Comm comm, int size) {
  constexpr int barriers = 3;
  double least = std::numeric_limits<double>::infinity();
  barrier(comm);
  for (int i = 0; i < barriers; ++i) {
    const auto begin = Clock::now();
    barrier(comm);
    least = std::min(least, seconds_since(begin).count);
  }
  return least / std::max(1.0, std::ceil(std::log2(size)));
}

double rate(MPI_Comm comm, int rank, int size) {
  constexpr int messages = 8, bytes = 1 << 16;
  constexpr size_t first = 2;  // what comes before may lie in buffers on the way, which pass it on at once
  std::vector<std::byte> mine(size_t{messages} * bytes), arrived(mine.size());
  std::array<MPI_Request, messages> sends{}, receives{};
  for (size_t i = 0; i < messages; ++i)
    check_mpi(MPI_Irecv(arrived.data() + i * bytes, bytes, MPI_BYTE, (rank + size - 1) % size, 0, comm,
                        &receives[i]));
  barrier(comm);
  for (size_t i = 0; i < messages; ++i)
    check_mpi(MPI_Isend(mine.data() + i * bytes, bytes, MPI_BYTE, (rank + 1) % size, 0, comm, &sends[i]));
  Clock::time_point begin;
  for (size_t i = 0; i < messages; ++i) {
    wait_for(receives[i]);
    if (i + 1 == first) begin = Clock::now();
  }
  const double took = seconds_since(begin).count;
  for (MPI_Request& send : sends) wait_for(send);
  return static_cast<double>((messages - first) * bytes) / std::max(took, 1e-9);
}

}  // namespace

MeasuredLink measured_link(MPI_Comm comm) {
  const ActivityScope waiting("the measuring of links");
  int rank = 0, size = 1;
  check_mpi(MPI_Comm_rank(comm, &rank));
  check_mpi(MPI_Comm_size(comm, &size));
  std::array<double, 2> mine = {rate(comm, rank, size), 1 / latency(comm, size)}, least{};
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallreduce(mine.data(), least.data(), 2, MPI_DOUBLE, MPI_MIN, comm, &request));
  wait_for(request);
  return {least[0], 1 / least[1]};
}

}  // namespace cortado
