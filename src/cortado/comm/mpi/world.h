#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mpi.h>
#include <span>
#include <vector>

#include "cortado/comm/traffic_count.h"

namespace cortado {

// Throws PeerError with MPI's words unless `code` is MPI_SUCCESS.
void check_mpi(int code);

template <typename T>
MPI_Datatype mpi_type();
template <>
inline MPI_Datatype mpi_type<float>() {
  return MPI_FLOAT;
}
template <>
inline MPI_Datatype mpi_type<double>() {
  return MPI_DOUBLE;
}

// MPI's communicator of some ranks of the job, and how many collectives were made on it.
struct MpiGroup {
  MPI_Comm comm = MPI_COMM_NULL;
  int member = 0, size = 1;
  int made = 0;
};

// MPI from its initialization to its end. Communicators of its own keep exchanges, blocking calls and the
// collectives of each group apart. Where it is destroyed by an exception, MPI is not ended: that would wait
// for the other ranks.
class MpiWorld {
 public:
  MpiWorld();
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm exchanges() const { return exchanges_; }
  MPI_Comm blocking() const { return blocking_; }
  // Made at the first use, by all members together; kept.
  MpiGroup& group(std::span<const int> ranks);
  TrafficCount& traffic() { return traffic_; }
  // Measured with bench/comm_bench.cpp: over shared memory long segments save handing over between processes,
  // over a network shorter ones keep both directions of a link busy.
  int64_t segment_bytes() const { return one_host_ ? int64_t{1} << 22 : int64_t{1} << 17; }
  // What all rings together have under way: over a network no more than keeps the link busy, so that a small
  // message that somebody waits for does not queue behind megabytes that nobody does. The ring that is needed
  // soonest need not ask, and one that has nothing under way may always send, so rings never wait for one
  // another.
  bool may_send_more() const { return one_host_ || under_way_ < 4 * segment_bytes(); }
  void send_begins(int64_t bytes) { under_way_ += bytes; }
  void send_ended(int64_t bytes) { under_way_ -= bytes; }

 private:
  int rank_ = 0, size_ = 1;
  int exceptions_ = 0;
  bool one_host_ = true;
  MPI_Comm exchanges_ = MPI_COMM_NULL, blocking_ = MPI_COMM_NULL;
  std::map<std::vector<int>, MpiGroup> groups_;
  TrafficCount traffic_;
  std::atomic<int64_t> under_way_ = 0;  // bytes
};

}  // namespace cortado
