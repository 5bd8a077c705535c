#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/device/runtime.h"

namespace cortado {

// How the bytes of a message get from a rank's device to another rank: from memory of the host, which MPI
// reads; through pinned memory of the host; from the device's memory, which MPI reads; or from device to
// device.
enum class Way { host, staging, device_mpi, link };
std::string_view name_of(Way way);  // "memory of the host", "NCCL", ...

// What ranks must know of each other's devices to choose the same ways.
struct DeviceFacts {
  bool of_host = true;                     // the host reads its memory
  device::Link link = device::Link::none;  // that this build can use
  std::string unit;                        // of the hardware, among all hosts
  bool mpi_reads = false;                  // this rank's MPI takes addresses of its memory
  bool operator==(const DeviceFacts&) const = default;
};

// The ways of one rank's messages. Both ends, and all members of a group, choose alike where it matters: what
// goes by a link does so for all.
class Ways {
 public:
  Ways(std::vector<DeviceFacts> of_ranks, int rank);

  // Of messages between this rank and a peer: a link where both have the same and no other rank of the job
  // is on either's device.
  Way with(int peer) const;
  // Of a collective of a group: a link where every two members have one. MPI's sums are made by the host, so
  // device_mpi is none.
  Way of(std::span<const int> group) const;
  const std::vector<int>& linked() const { return linked_; }  // all ranks with a link to this one, and itself
  // "messages with ranks 1, 2: NCCL", a line for each way; what forbids a link after it.
  std::vector<std::string> text() const;

 private:
  bool has_link(int rank) const;
  std::string obstacle(int peer) const;  // why there is no link; empty: there is, or this rank needs none
  std::vector<DeviceFacts> of_ranks_;
  int rank_;
  std::vector<int> linked_;
};

// Asks all ranks of the job; all call it.
Ways ways_of(Communicator& job, const device::DeviceRuntime& device);

// A communicator whose transmissions move memory of devices, by addresses of for_kernels(), and are done by
// `queue`: start() gives them to it, in their order among its other work; they end once the queue has done
// them. Exchanges are with linked ranks alone; collectives of `groups`. The sums are the same on every
// member. What blocks is the job's. All ranks of the job call it, also those without a link, which get null.
// The job, the device and the queue must outlive it. Where a device is one of NCCL, its groups stay with it.
std::unique_ptr<Communicator> make_links(Communicator& job, device::DeviceRuntime& device,
                                         device::Queue& queue, const Ways& ways,
                                         const std::vector<std::vector<int>>& groups);

// The NCCL that this build has (comm/nccl) or has not (comm/no_nccl).
bool built_with_nccl();
std::string nccl_version();  // "2.28.9"; "none: built without it"
// For a rank that has a link of NCCL, and all others of its job. `groups`: that this rank needs.
std::unique_ptr<Communicator> make_nccl(Communicator& job, device::DeviceRuntime& device,
                                        device::Queue& queue, const std::vector<int>& linked,
                                        std::vector<std::vector<int>> groups);

}  // namespace cortado
