// The files of a LevelDB folder, without the checksums that keep random bytes from what lies after them.
#include <cstddef>
#include <cstdint>

#include "cortado/base/error.h"
#include "cortado/data/leveldb_files.h"
#include "cortado/data/snappy.h"

namespace {

void read_entries(std::string_view block) {
  using namespace cortado::leveldb_files;
  for_each_entry(block, [](const std::string& key, std::string_view value) { write_of(key, value); });
}

void read(uint8_t kind, std::string_view bytes) {
  using namespace cortado::leveldb_files;
  switch (kind % 5) {
    case 0:
      for_each_log_record(bytes,
                          [](std::string_view record) { for_each_write(record, [](const Write&) {}); });
      return;
    case 1:
      for_each_write(bytes, [](const Write&) {});
      return;
    case 2: {
      Manifest manifest;
      apply_manifest_edit(bytes, manifest);
      return;
    }
    case 3:
      read_entries(bytes);
      return;
    default:
      cortado::uncompressed_snappy(bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    read(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const cortado::UserError&) {
  }
  return 0;
}
