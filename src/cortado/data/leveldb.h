#pragma once

#include <mutex>

#include "cortado/data/leveldb_files.h"
#include "cortado/data/record_database.h"

namespace cortado {

// Reads a LevelDB folder without LevelDB's library, which lets one process alone open it, writes into it and
// counts no records. It must not be written meanwhile; it may be open several times and on a read-only disk.
// Opening it reads all tables once, for where each record lies; values are read when they are asked for. No
// bytes of its files end in more than an error.
class LeveldbReader : public RecordDatabase {
 public:
  // Throws UserError: missing, no LevelDB, damaged, empty, keys in an order of its own.
  explicit LeveldbReader(const std::string& path);

  int64_t size() const override { return static_cast<int64_t>(records_.size()); }
  DatabaseRecord at(int64_t index) override;
  std::string key(int64_t index) override { return records_[index].key; }

 private:
  static constexpr int in_log = -1;
  // A write of a key. The value: a part of a table's block, or one of `logged_`.
  struct Place {
    std::string key;
    uint64_t sequence = 0;
    bool deletes = false;
    int table = in_log;  // index
    leveldb_files::BlockHandle block;
    uint64_t begin = 0, size = 0;  // in the block; of a logged one: its number
  };

  void read_log(std::string_view log);
  void read_table(int table);
  void keep_last_writes();
  std::shared_ptr<const std::string> block_of(const Place& place);

  std::string path_;
  std::vector<std::string> tables_;  // paths
  std::vector<Place> records_;
  std::vector<std::string> logged_;  // values that no table has

  std::mutex mutex_;  // guards the block that was read last: records lie beside each other
  int last_table_ = in_log;
  uint64_t last_offset_ = 0;
  std::shared_ptr<const std::string> last_block_;
};

}  // namespace cortado
