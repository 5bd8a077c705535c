#include "cortado/data/leveldb_records.h"

#include <filesystem>
#include <fmt/format.h>
#include <leveldb/db.h>
#include <memory>

#include "cortado/base/error.h"

namespace cortado {
namespace {

void check(const leveldb::Status& status, const std::string& path) {
  if (!status.ok()) throw UserError(fmt::format("cannot read LevelDB {}: {}", path, status.ToString()));
}

std::string_view view(const leveldb::Slice& slice) { return {slice.data(), slice.size()}; }

}  // namespace

void for_each_leveldb_record(
    const std::string& path,
    const std::function<void(std::string_view key, std::string_view value)>& record) {
  // The library would make a folder that is not there.
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::path(path) / "CURRENT", error))
    throw UserError(fmt::format("{} holds no file CURRENT, so it is not a LevelDB database", path));
  leveldb::Options options;
  options.paranoid_checks = true;
  leveldb::DB* opened = nullptr;
  check(leveldb::DB::Open(options, path, &opened), path);
  const std::unique_ptr<leveldb::DB> database(opened);
  leveldb::ReadOptions reading;
  reading.verify_checksums = true;
  reading.fill_cache = false;
  const std::unique_ptr<leveldb::Iterator> at(database->NewIterator(reading));
  for (at->SeekToFirst(); at->Valid(); at->Next()) record(view(at->key()), view(at->value()));
  check(at->status(), path);
}

}  // namespace cortado
