#pragma once

#include <string>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/device/host/host_runtime.h"
#include "cortado/machine/device_graph.h"

namespace cortado {

// What a rank sends the others about itself, beside what it measures. Plain bytes.
struct RankFacts {
  char host[256] = "", processor[128] = "", instruction_set[16] = "";  // of its kernels
  char device[128] = "";                                               // empty: the processor
  bool own_memory = false;  // `memory` is the device's, not the host's
  int sockets = 0, cores = 0, threads = 0;
  int64_t memory = 0;
  double peak = 0, sustained = 0, memory_bandwidth = 0, task_overhead = 0;
};

// The ranks of the job, nothing measured. All ranks call these; every one gets the same.
std::vector<RankFacts> facts_of_job(Communicator& job, const device::DeviceRuntime& device = device::host());

// Whether a rank has another device than the processor; whether devices are of several kinds.
bool on_devices(const std::vector<RankFacts>& ranks);
bool mixed_devices(const std::vector<RankFacts>& ranks);

// The node of each rank, counted from 0: ranks of one host name. Throws UserError where a host's ranks are
// not consecutive, since a machine lists its devices node by node.
std::vector<int> nodes_of_ranks(const std::vector<RankFacts>& ranks);

// The job's machine, measured in about so many seconds while nothing else runs. `device`: this rank's; where
// one is not the processor, all are compared by the work of measure_device_rate(). Measured sums
// (Calibration::allreduce) are at rank 0 alone.
Machine measure_machine(Communicator& job, double seconds, device::DeviceRuntime& device = device::host());

// The same bytes at every rank: those of rank 0.
std::string from_first_rank(Communicator& job, const std::string& text);

}  // namespace cortado
