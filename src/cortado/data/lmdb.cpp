#include "cortado/data/lmdb.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <lmdb.h>

#include "cortado/base/error.h"

namespace cortado {

namespace fs = std::filesystem;

namespace {

void check_lmdb(int code, const std::string& path, const char* doing) {
  if (code == MDB_SUCCESS) return;
  throw UserError(fmt::format("{} database {} failed: {}", doing, path, mdb_strerror(code)));
}

// One of the two meta pages at the start of data.mdb, as LMDB 0.9 lays it out on 64-bit machines: a page
// header of 16 bytes, then magic, version, address, map size, two tree records of 48 bytes (the first begins
// with the page size), last page, transaction.
struct MetaPage {
  bool valid = false;
  uint64_t page_bytes = 0, last_page = 0, transaction = 0;
};

MetaPage read_meta_page(std::ifstream& file, uint64_t offset) {
  constexpr uint32_t lmdb_magic = 0xBEEFC0DE;
  std::array<char, 152> bytes;
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  if (!file.read(bytes.data(), bytes.size())) return {};
  auto number = [&](size_t at, size_t size) {
    uint64_t value = 0;
    std::memcpy(&value, &bytes[at], size);
    return value;
  };
  return {number(16, 4) == lmdb_magic, number(40, 4), number(136, 8), number(144, 8)};
}

// LMDB maps the file and trusts it: a page past its end would be a bus error. So the file's size is compared
// with the last page that the newer meta page names.
uint64_t check_lmdb_file(const fs::path& path) {
  std::error_code error;
  const uint64_t bytes = fs::file_size(path, error);
  if (error) throw UserError(fmt::format("cannot open database {}: {}", path.string(), error.message()));
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError(fmt::format("cannot open database {}; check its permissions", path.string()));
  const MetaPage first = read_meta_page(file, 0);
  if (!first.valid)
    throw UserError(fmt::format("{} is not an LMDB database; make one with `cortado data`", path.string()));
  const MetaPage second = read_meta_page(file, first.page_bytes);
  const MetaPage& newer = second.valid && second.transaction > first.transaction ? second : first;
  if (!second.valid || newer.page_bytes == 0 || newer.last_page >= bytes / newer.page_bytes)
    throw UserError(
        fmt::format("database {} is truncated: it has {} bytes, {} are needed; copy or make it again",
                    path.string(), bytes, (newer.last_page + 1) * newer.page_bytes));
  return bytes;
}

}  // namespace

LmdbReader::LmdbReader(const std::string& path) : path_(path) {
  const bool single_file = fs::is_regular_file(path);
  if (!fs::exists(path))
    throw UserError(
        fmt::format("database {} does not exist; check `source`, or make it with `cortado data`", path));
  if (!single_file && !fs::exists(fs::path(path) / "data.mdb"))
    throw UserError(
        fmt::format("{} holds no data.mdb, so it is not an LMDB database; if it is a LevelDB, convert "
                    "its images again with `cortado data`",
                    path));
  const uint64_t bytes = check_lmdb_file(single_file ? fs::path(path) : fs::path(path) / "data.mdb");
  check_lmdb(mdb_env_create(&environment_), path, "opening");
  try {
    const unsigned flags = MDB_RDONLY | MDB_NOTLS | MDB_NOLOCK | (single_file ? MDB_NOSUBDIR : 0);
    MDB_dbi table = 0;
    MDB_stat statistics{};
    check_lmdb(mdb_env_set_mapsize(environment_, bytes), path, "opening");
    check_lmdb(mdb_env_open(environment_, path.c_str(), flags, 0664), path, "opening");
    check_lmdb(mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &transaction_), path, "reading");
    check_lmdb(mdb_dbi_open(transaction_, nullptr, 0, &table), path, "reading");
    check_lmdb(mdb_stat(transaction_, table, &statistics), path, "reading");
    check_lmdb(mdb_cursor_open(transaction_, table, &cursor_), path, "reading");
    size_ = static_cast<int64_t>(statistics.ms_entries);
    if (size_ == 0) throw UserError(fmt::format("database {} is empty", path));
  } catch (...) {
    if (cursor_) mdb_cursor_close(cursor_);
    if (transaction_) mdb_txn_abort(transaction_);
    mdb_env_close(environment_);
    throw;
  }
}

LmdbReader::~LmdbReader() {
  mdb_cursor_close(cursor_);
  mdb_txn_abort(transaction_);
  mdb_env_close(environment_);
}

LmdbReader::Record LmdbReader::at(int64_t index) {
  ensure(index >= 0 && index < size_, "LMDB record outside the database");
  std::lock_guard lock(mutex_);
  MDB_val key, value;
  const int64_t distance = position_ < 0 ? size_ : std::abs(index - position_);
  if (index == size_ - 1 && distance > 1) {
    check_lmdb(mdb_cursor_get(cursor_, &key, &value, MDB_LAST), path_, "reading");
    position_ = index;
  } else if (index < distance) {
    check_lmdb(mdb_cursor_get(cursor_, &key, &value, MDB_FIRST), path_, "reading");
    position_ = 0;
  }
  for (; position_ != index; position_ += position_ < index ? 1 : -1)
    check_lmdb(mdb_cursor_get(cursor_, &key, &value, position_ < index ? MDB_NEXT : MDB_PREV), path_,
               "reading");
  check_lmdb(mdb_cursor_get(cursor_, &key, &value, MDB_GET_CURRENT), path_, "reading");
  return {{static_cast<const char*>(key.mv_data), key.mv_size},
          {static_cast<const uint8_t*>(value.mv_data), value.mv_size}};
}

LmdbWriter::LmdbWriter(const std::string& path, bool replace)
    : path_(path), temporary_(path + ".partial"), replace_(replace) {
  if (fs::exists(path) && !replace)
    throw UserError(fmt::format("{} exists already; give another name, or --force to replace it", path));
  std::error_code error;
  fs::remove_all(temporary_, error);
  fs::create_directories(temporary_, error);
  if (error) throw UserError(fmt::format("cannot make database folder {}: {}", temporary_, error.message()));
  check_lmdb(mdb_env_create(&environment_), path, "making");
  try {
    check_lmdb(mdb_env_set_mapsize(environment_, map_bytes_), path, "making");
    check_lmdb(mdb_env_open(environment_, temporary_.c_str(), MDB_NOSYNC | MDB_NOTLS, 0664), path, "making");
  } catch (...) {
    close();
    fs::remove_all(temporary_, error);
    throw;
  }
}

LmdbWriter::~LmdbWriter() {
  if (!environment_) return;
  close();
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
}

void LmdbWriter::close() {
  mdb_env_close(environment_);
  environment_ = nullptr;
}

void LmdbWriter::put(std::string_view key, std::string_view value) {
  constexpr size_t longest_key = 511, records_a_commit = 1000, bytes_a_commit = size_t{16} << 20;
  pending_.emplace_back(key.substr(0, longest_key), value);
  pending_bytes_ += value.size();
  if (pending_.size() >= records_a_commit || pending_bytes_ >= bytes_a_commit) commit();
}

void LmdbWriter::commit() {
  int code = MDB_MAP_FULL;
  while (code == MDB_MAP_FULL) {
    MDB_txn* transaction = nullptr;
    MDB_dbi table = 0;
    check_lmdb(mdb_txn_begin(environment_, nullptr, 0, &transaction), path_, "writing");
    code = mdb_dbi_open(transaction, nullptr, 0, &table);
    for (size_t i = 0; i < pending_.size() && code == MDB_SUCCESS; ++i) {
      MDB_val key{pending_[i].first.size(), pending_[i].first.data()};
      MDB_val value{pending_[i].second.size(), pending_[i].second.data()};
      code = mdb_put(transaction, table, &key, &value, 0);
    }
    if (code == MDB_SUCCESS)
      code = mdb_txn_commit(transaction);
    else
      mdb_txn_abort(transaction);
    if (code == MDB_MAP_FULL)
      check_lmdb(mdb_env_set_mapsize(environment_, map_bytes_ *= 2), path_, "writing");
  }
  check_lmdb(code, path_, "writing");
  pending_.clear();
  pending_bytes_ = 0;
}

void LmdbWriter::finish() {
  if (!pending_.empty()) commit();
  check_lmdb(mdb_env_sync(environment_, 1), path_, "writing");
  close();
  std::error_code error;
  fs::remove(fs::path(temporary_) / "lock.mdb", error);
  if (replace_) fs::remove_all(path_, error);
  fs::rename(temporary_, path_, error);
  if (error) {
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
    throw UserError(fmt::format("cannot rename {} to {}: {}", temporary_, path_, error.message()));
  }
}

}  // namespace cortado
