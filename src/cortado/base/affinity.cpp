#include "cortado/base/affinity.h"

namespace cortado {

cpu_set_t thread_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_SET(0, &set);
  return set;
}

void keep_thread_on(const cpu_set_t& processors) { sched_setaffinity(0, sizeof processors, &processors); }

}  // namespace cortado
