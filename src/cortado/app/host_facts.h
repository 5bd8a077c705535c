#pragma once

#include <string>

#include "cortado/base/units.h"

namespace cortado {

// What the system tells of the machine that this process runs on.
struct HostFacts {
  std::string name;       // its host name
  std::string processor;  // "AMD EPYC 9R14"; empty when not known
  int sockets = 0, cores = 0;
  Bytes memory;  // that the process may use: the machine's, or the least limit of its control groups
};
HostFacts host_facts();

}  // namespace cortado
