#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cortado/base/spelling.h"
#include "cortado/comm/communicator.h"
#include "cortado/device/device_name.h"
#include "cortado/device/runtime.h"

namespace cortado {

// On which devices ranks compute, in the words of the options. One of the first three at most; none: the CPU.
struct DeviceWords {
  std::string device;        // of every rank: "cpu", "gpu", "gpu:1", "emulated"
  std::string devices;       // of the ranks of each host, in their order: "gpu:0,gpu:1,cpu"
  std::string gpu;           // Caffe's: "0", "0,1", "all"
  std::string graph;         // "on" (also: nothing) or "off": iterations as graphs, where the device can
  bool cpu_instead = false;  // where `gpu` asks for what is not there; see also CORTADO_CPU_INSTEAD
};

// The devices that the words name, for the ranks of one host in their order; one is of every rank. Throws
// UserError for what is no device, or a GPU that this host does not have.
std::vector<device::DeviceName> devices_of(const DeviceWords& words, Spelling spelled);

// Says that the CPU computes in place of a GPU; empty: it does not.
std::string cpu_instead_notice(const DeviceWords& words, Spelling spelled);

// The device of a rank, and the names of those of all ranks.
struct RankDevice {
  std::shared_ptr<device::DeviceRuntime> runtime;
  std::vector<device::DeviceName> of_ranks;
  bool all_cpu() const;
  bool mixed() const;        // devices of several kinds
  std::string text() const;  // "gpu:0, gpu:1, cpu", by rank
  std::string use() const;   // "Use gpu:0, gpu:1, cpu."; "Use CPU.", as Caffe says it, where all ranks do
};
// Opens this rank's device. All ranks call it. Throws UserError as devices_of(), and where a host has another
// number of ranks than devices.
RankDevice open_rank_device(const DeviceWords& words, Communicator& job, Spelling spelled);

}  // namespace cortado
