#include "cortado/comm/host_share.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sched.h>
#include <string>
#include <unistd.h>

namespace cortado {
namespace {

// What a rank tells the others: its machine (containers and network namespaces of one machine share its
// processors, so the host name will not do) and the processors it may use.
struct Place {
  char machine[64] = "";
  cpu_set_t processors{};
};

cpu_set_t own_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_SET(0, &set);
  return set;
}

Place own_place() {
  Place place;
  std::string boot;
  if (std::ifstream("/proc/sys/kernel/random/boot_id") >> boot) {
    boot.copy(place.machine, sizeof place.machine - 1);
  } else {
    gethostname(place.machine, sizeof place.machine - 1);
  }
  place.processors = own_processors();
  return place;
}

}  // namespace

int usable_processors() {
  cpu_set_t set = own_processors();
  return std::max(1, CPU_COUNT(&set));
}

int processors_of_rank(Communicator& communicator) {
  Place mine = own_place();
  int sharing = 0;
  for (const auto& bytes : communicator.all_to_all_bytes(std::as_bytes(std::span(&mine, 1)))) {
    Place theirs;
    std::memcpy(&theirs, bytes.data(), sizeof theirs);
    cpu_set_t both;
    CPU_AND(&both, &mine.processors, &theirs.processors);
    if (std::strcmp(mine.machine, theirs.machine) == 0 && CPU_COUNT(&both) > 0) ++sharing;
  }
  return std::max(1, CPU_COUNT(&mine.processors) / std::max(1, sharing));
}

}  // namespace cortado
