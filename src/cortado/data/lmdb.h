#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cortado/data/database_folder.h"
#include "cortado/data/record_database.h"

struct MDB_env;

namespace cortado {

class LmdbFile;
class LmdbTree;

// Reads an LMDB folder (or single file). It is opened without locks, so the same database may be open
// several times and on a read-only disk; it must not be written meanwhile. No bytes of the file, and nothing
// that happens to it, end in more than an error: pages are checked as they are met (data/lmdb_file.h). Any
// thread may read.
class LmdbReader : public RecordDatabase {
 public:
  using Record = DatabaseRecord;

  // Throws UserError: missing, not an LMDB, truncated, empty.
  explicit LmdbReader(const std::string& path);
  ~LmdbReader() override;
  LmdbReader(const LmdbReader&) = delete;

  int64_t size() const override { return size_; }
  // Record `index` in key order. The first call beyond all earlier ones reads the leaf pages between, any
  // other at most one. Throws UserError naming database and page when the tree of records is corrupt,
  // BrokenRecord when this record's value alone is.
  Record at(int64_t index) override;
  std::string key(int64_t index) override;

 private:
  std::unique_ptr<const LmdbFile> file_;
  std::mutex mutex_;  // guards the tree
  std::unique_ptr<LmdbTree> tree_;
  int64_t size_ = 0;
};

// Writes a new LMDB folder, which has its name when it is whole (database_folder.h).
class LmdbWriter {
 public:
  // Throws UserError when `path` exists, unless `replace` and it is a database that holds none of `inputs`.
  LmdbWriter(const std::string& path, bool replace, const std::vector<std::string>& inputs = {});
  ~LmdbWriter();
  LmdbWriter(const LmdbWriter&) = delete;

  // Keys longer than LMDB's 511 bytes are cut. Throws UserError: disk full.
  void put(std::string_view key, std::string_view value);
  // A text that goes with the database: DatabaseFolder::labels or ::list.
  void add_file(const std::string& name, std::string_view content);
  void finish();

 private:
  void commit();
  void check_written(int code) const;
  void close();

  std::string path_;
  DatabaseFolder folder_;
  MDB_env* environment_ = nullptr;
  size_t map_bytes_ = size_t{64} << 20;  // doubled whenever full
  std::vector<std::pair<std::string, std::string>> pending_;
  size_t pending_bytes_ = 0;
};

}  // namespace cortado
