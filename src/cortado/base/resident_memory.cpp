#include "cortado/base/resident_memory.h"

#include <sys/resource.h>

namespace cortado {

Bytes peak_resident_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {static_cast<int64_t>(usage.ru_maxrss) * 1024};
}

}  // namespace cortado
