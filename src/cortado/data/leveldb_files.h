#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cortado::leveldb_files {

// Files of a LevelDB folder (google/leveldb, doc/log_format.md and doc/table_format.md, and
// db/version_edit.cc). Functions throw UserError with the reason alone; whoever knows the file adds its name.

// The records of a log: those of the manifest and of the writes that no table has yet. A last record that was
// not written whole is left out, as LevelDB does. The views are of strings that go after the call.
void for_each_log_record(std::string_view log, const std::function<void(std::string_view record)>& visit);

// What the records of a manifest say together.
struct Manifest {
  uint64_t log = 0, previous_log = 0;  // logs from `log` on, and `previous_log`, are not in tables
  std::set<uint64_t> tables;
};
Manifest read_manifest(std::string_view bytes);
// A record of a manifest.
void apply_manifest_edit(std::string_view edit, Manifest& manifest);

// One write of a key: the later one, of the larger sequence number, counts.
struct Write {
  uint64_t sequence = 0;
  bool deletes = false;
  std::string_view key, value;
};
// The writes of a batch, a record of a log.
void for_each_write(std::string_view batch, const std::function<void(const Write&)>& visit);

// Where a block of a table lies: `size` bytes from `offset` on, then its kind and checksum.
struct BlockHandle {
  uint64_t offset = 0, size = 0;
};
// The data blocks of a table file, in key order.
std::vector<BlockHandle> data_blocks(const std::string& path);
// A block's content, uncompressed.
std::string read_block(const std::string& path, const BlockHandle& handle);
// The entries of a block's content; the views of values are of it.
void for_each_entry(std::string_view block,
                    const std::function<void(const std::string& key, std::string_view value)>& visit);
// An entry's key as tables have it: with sequence number and kind.
Write write_of(std::string_view table_key, std::string_view value);

}  // namespace cortado::leveldb_files
