#pragma once

#include <string>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/machine/device_graph.h"

namespace cortado {

// What a rank sends the others about itself, beside what it measures. Plain bytes.
struct RankFacts {
  char host[256] = "", processor[128] = "", instruction_set[16] = "";  // of its kernels
  int sockets = 0, cores = 0, threads = 0;
  int64_t memory = 0;
  double peak = 0, sustained = 0, memory_bandwidth = 0, task_overhead = 0;
};

// The ranks of the job, nothing measured. All ranks call these; every one gets the same.
std::vector<RankFacts> facts_of_job(Communicator& job);

// The node of each rank, counted from 0: ranks of one host name. Throws UserError where a host's ranks are
// not consecutive, since a machine lists its devices node by node.
std::vector<int> nodes_of_ranks(const std::vector<RankFacts>& ranks);

// The job's machine, measured in about so many seconds while nothing else runs. Measured sums
// (Calibration::allreduce) are at rank 0 alone.
Machine measure_machine(Communicator& job, double seconds);

// The same bytes at every rank: those of rank 0.
std::string from_first_rank(Communicator& job, const std::string& text);

}  // namespace cortado
