#pragma once

#include <string>
#include <vector>

#include "cortado/base/units.h"

namespace cortado {

// What the system says about the machine that this process runs on.
struct HostFacts {
  std::string name;                         // its host name
  std::string processor;                    // "AMD EPYC 9R14"; empty when not known
  int sockets = 0, cores = 0, threads = 0;  // threads: of the hardware
  struct Cache {
    int level = 0, count = 0;
    Bytes size;  // of one
  };
  std::vector<Cache> caches;                  // of data; the nearest to a core first
  std::vector<std::string> instruction_sets;  // those that kernels are written for: "avx2", "avx512f", ...
  Bytes memory;  // that the process may use: the machine's, or the least limit of its control groups
};
HostFacts host_facts();

// Lines "Processor:    AMD EPYC 9R14", with the threads that this process computes with unless told
// otherwise.
std::string facts_text(const HostFacts& facts);

// "L1 2 x 32 KiB, L2 2 x 1024 KiB, L3 1 x 32768 KiB"; "not known".
std::string caches_text(const std::vector<HostFacts::Cache>& caches);

}  // namespace cortado
