#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mpi.h>
#include <span>
#include <vector>

#include "cortado/comm/mpi/calls.h"
#include "cortado/comm/traffic_count.h"
#include "cortado/comm/under_way.h"

namespace cortado {

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
  // `apart`: as if each rank had a host of its own. `stuck` is called on a thread of its own where MPI does
  // not end in `time_to_end`.
  MpiWorld(bool apart, std::function<void()> stuck, std::chrono::seconds time_to_end);
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm exchanges() const { return exchanges_; }
  MPI_Comm blocking() const { return blocking_; }
  int largest_tag() const { return largest_tag_; }
  // Made at the first use, by all members together; kept.
  MpiGroup& group(std::span<const int> ranks);
  TrafficCount& traffic() { return traffic_; }
  // What a ring sends at a time. Over shared memory long segments save handing over between processes
  // (bench/comm_bench.cpp); over a network they follow its rate.
  int64_t segment_bytes() const { return segment_bytes_; }
  UnderWay& under_way() { return under_way_; }

 private:
  int rank_ = 0, size_ = 1, largest_tag_ = 32767;
  int exceptions_ = 0;
  int64_t segment_bytes_ = int64_t{1} << 22;
  bool one_host_ = true;
  bool begun_here_ = true;  // false: the program has begun MPI, and ends it
  std::function<void()> stuck_;
  std::chrono::seconds time_to_end_;
  MPI_Comm exchanges_ = MPI_COMM_NULL, blocking_ = MPI_COMM_NULL;
  std::map<std::vector<int>, MpiGroup> groups_;
  TrafficCount traffic_;
  UnderWay under_way_;
};

}  // namespace cortado
