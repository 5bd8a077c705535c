#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct MDB_env;
struct MDB_txn;
struct MDB_cursor;

namespace cortado {

// Reads an LMDB folder (or single file). It is opened without locks, so the same database may be open
// several times and on a read-only disk; it must not be written meanwhile. Keys and values are borrowed from
// the memory map and live as long as this object. Any thread may read.
class LmdbReader {
 public:
  struct Record {
    std::string_view key;
    std::span<const uint8_t> value;
  };

  // Throws UserError: missing, not an LMDB, truncated, empty.
  explicit LmdbReader(const std::string& path);
  ~LmdbReader();
  LmdbReader(const LmdbReader&) = delete;

  int64_t size() const { return size_; }
  // Record `index` in key order. Cheap near the previous call's index, else one step a record. Throws
  // UserError naming the database when a page is corrupt.
  Record at(int64_t index);

 private:
  std::string path_;
  MDB_env* environment_ = nullptr;
  MDB_txn* transaction_ = nullptr;
  MDB_cursor* cursor_ = nullptr;
  std::mutex mutex_;
  int64_t size_ = 0;
  int64_t position_ = -1;  // the cursor's record; -1: none yet
};

// Writes a new LMDB folder: under a temporary name until finish(), so a killed writer never leaves half a
// database. Without finish() the destructor removes what was written.
class LmdbWriter {
 public:
  // Throws UserError when `path` exists, unless `replace`.
  LmdbWriter(const std::string& path, bool replace);
  ~LmdbWriter();
  LmdbWriter(const LmdbWriter&) = delete;

  // Keys longer than LMDB's 511 bytes are cut. Throws UserError: disk full.
  void put(std::string_view key, std::string_view value);
  void finish();

 private:
  void commit();
  void close();

  std::string path_, temporary_;
  bool replace_ = false;
  MDB_env* environment_ = nullptr;
  size_t map_bytes_ = size_t{64} << 20;  // doubled whenever full
  std::vector<std::pair<std::string, std::string>> pending_;
  size_t pending_bytes_ = 0;
};

}  // namespace cortado
