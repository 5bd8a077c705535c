#include "cortado/data/lmdb.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <lmdb.h>
#include <unistd.h>

#include "cortado/base/error.h"
#include "cortado/base/file.h"

namespace cortado {

namespace fs = std::filesystem;

namespace {

void check_lmdb(int code, const std::string& path, const char* doing) {
  if (code == MDB_SUCCESS) return;
  throw UserError(fmt::format("{} database {} failed: {}", doing, path, mdb_strerror(code)));
}

// Where a file system takes a part of what is written, liblmdb tells of an input/output error. Writing a
// little more, at the end of a database that is given up, tells why.
std::string reason_not_written(int code, const fs::path& file) {
  if (code != EIO) return mdb_strerror(code);
  constexpr std::array<char, 65536> more{};
  const int descriptor = open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  ssize_t written = descriptor < 0 ? -1 : 1;
  for (size_t left = more.size(); written > 0 && left > 0; left -= static_cast<size_t>(written))
    written = write(descriptor, more.data(), left);
  const int reason = written < 0 ? errno : code;
  if (descriptor >= 0) close(descriptor);
  return std::strerror(reason);
}

}  // namespace

LmdbWriter::LmdbWriter(const std::string& path, bool replace, const std::vector<std::string>& inputs)
    : path_(path), folder_(path, replace, inputs) {
  check_lmdb(mdb_env_create(&environment_), path, "making");
  try {
    check_lmdb(mdb_env_set_mapsize(environment_, map_bytes_), path, "making");
    check_lmdb(mdb_env_open(environment_, folder_.growing().c_str(), MDB_NOSYNC | MDB_NOTLS, 0664), path,
               "making");
  } catch (...) {
    close();
    throw;
  }
}

LmdbWriter::~LmdbWriter() {
  if (environment_) close();
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
  check_written(code);
  pending_.clear();
  pending_bytes_ = 0;
}

void LmdbWriter::check_written(int code) const {
  if (code == MDB_SUCCESS) return;
  throw UserError(fmt::format("writing database {} failed: {}", path_,
                              reason_not_written(code, fs::path(folder_.growing()) / "data.mdb")));
}

void LmdbWriter::add_file(const std::string& name, std::string_view content) {
  try {
    write_file_atomically((fs::path(folder_.growing()) / name).string(), content);
  } catch (const UserError& error) {
    throw UserError(fmt::format("writing {} of database {} failed: {}", name, path_, error.what()));
  }
}

void LmdbWriter::finish() {
  if (!pending_.empty()) commit();
  check_written(mdb_env_sync(environment_, 1));
  close();
  std::error_code ignored;
  fs::remove(fs::path(folder_.growing()) / DatabaseFolder::lock, ignored);
  folder_.finish();
}

}  // namespace cortado
