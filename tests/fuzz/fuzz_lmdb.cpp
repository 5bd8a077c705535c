// Any bytes as an LMDB file. liblmdb itself never sees them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cortado/base/error.h"
#include "cortado/data/image.h"
#include "cortado/data/lmdb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cortado;
  static const int file = memfd_create("database", 0);
  if (ftruncate(file, static_cast<off_t>(size)) != 0 ||
      pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
    return 0;
  try {
    LmdbReader reader(fmt::format("/proc/self/fd/{}", file));
    for (int64_t i = 0; i < std::min<int64_t>(reader.size(), 40); ++i) {
      try {
        reader.at(i);
        reader.key(reader.size() - 1 - i);
      } catch (const BrokenRecord&) {
      }
    }
  } catch (const UserError&) {
  }
  return 0;
}
