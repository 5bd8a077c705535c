#include <filesystem>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/data/lmdb.h"
#include "cortado/data/lmdb_tree.h"

namespace cortado {

namespace fs = std::filesystem;

namespace {

std::string file_of_database(const std::string& path) {
  std::error_code unreadable;  // then it is not there, or its opening says why
  if (!fs::exists(path, unreadable))
    throw UserError(
        fmt::format("database {} does not exist; check `source`, or make it with `cortado data`", path));
  if (fs::is_regular_file(path, unreadable)) return path;
  const fs::path file = fs::path(path) / "data.mdb";
  if (!fs::exists(file, unreadable))
    throw UserError(
        fmt::format("{} holds no data.mdb, so it is not an LMDB database; if it is a LevelDB, set "
                    "backend: LEVELDB, or make an LMDB of it with `cortado data leveldb`",
                    path));
  return file.string();
}

}  // namespace

LmdbReader::LmdbReader(const std::string& path)
    : file_(std::make_unique<LmdbFile>(path, file_of_database(path))),
      tree_(std::make_unique<LmdbTree>(*file_)),
      size_(static_cast<int64_t>(file_->entries())) {
  if (size_ == 0) throw UserError(fmt::format("database {} is empty", path));
}

LmdbReader::~LmdbReader() = default;

LmdbReader::Record LmdbReader::at(int64_t index) {
  ensure(index >= 0 && index < size_, "LMDB record outside the database");
  Record record;
  LmdbNode elsewhere;
  {
    std::lock_guard lock(mutex_);
    const LmdbNode& node = tree_->find(index);
    record.key = node.key;
    if (node.page == 0) record.value = file_->value(node);
    elsewhere.page = node.page;
    elsewhere.value_bytes = node.value_bytes;
  }
  if (elsewhere.page != 0) record.value = file_->value(elsewhere);
  return record;
}

std::string LmdbReader::key(int64_t index) {
  ensure(index >= 0 && index < size_, "LMDB record outside the database");
  std::lock_guard lock(mutex_);
  return std::string(tree_->find(index).key);
}

}  // namespace cortado
