#include "cortado/data/database_folder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include "cortado/base/error.h"
#include "cortado/base/file.h"

namespace cortado {
namespace {

namespace fs = std::filesystem;

constexpr std::array ours = {DatabaseFolder::data, DatabaseFolder::lock, DatabaseFolder::labels,
                             DatabaseFolder::list};

// Absolute, without links, dots and a closing slash; what is not there yet may stand in it.
fs::path plain(const std::string& path) {
  std::error_code error;
  fs::path whole = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) throw UserError(fmt::format("{}: {}", path, error.message()));
  return whole.has_filename() ? whole : whole.parent_path();
}

bool is_or_holds(const fs::path& folder, const fs::path& path) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

// LMDB's magic number lies 16 bytes after the beginning.
bool begins_as_lmdb(const fs::path& file) {
  constexpr uint32_t lmdb_magic = 0xBEEFC0DE;
  uint32_t magic = 0;
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(16);
  stream.read(reinterpret_cast<char*>(&magic), sizeof magic);
  return stream && magic == lmdb_magic;
}

// What `cortado data` made, or an empty folder.
bool may_be_replaced(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return false;
  bool empty = true;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const bool known = std::ranges::find(ours, entry.path().filename().string()) != ours.end();
    if (!known || !entry.is_regular_file() || entry.is_symlink()) return false;
    empty = false;
  }
  return !error && (empty || begins_as_lmdb(folder / DatabaseFolder::data));
}

void rename_or_throw(const std::string& from, const std::string& to, const std::string& path) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    throw UserError(fmt::format("cannot write database {}: {}", path, std::strerror(errno)));
}

}  // namespace

DatabaseFolder::DatabaseFolder(const std::string& path, bool replace, const std::vector<std::string>& inputs)
    : path_(path), inputs_(inputs), replace_(replace) {
  if (path.empty()) throw UserError("the name of the database to make is empty; give one");
  target_ = plain(path).string();
  check_replaced();
  try {
    make_parents();
    do {
      growing_ = temporary_name(target_);
    } while (mkdir(growing_.c_str(), 0777) != 0 && errno == EEXIST);
    if (!fs::is_directory(growing_))
      throw UserError(fmt::format("cannot make database {}: {}", path_, std::strerror(errno)));
  } catch (...) {
    remove_growing();
    throw;
  }
}

DatabaseFolder::~DatabaseFolder() { remove_growing(); }

void DatabaseFolder::check_replaced() const {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(target_, error))) return;
  const bool database = may_be_replaced(target_);
  if (!replace_) {
    throw UserError(fmt::format("{} exists already; give another name{}", path_,
                                database ? ", or --force to replace it" : ""));
  }
  if (is_or_holds(target_, fs::current_path(error)))
    throw UserError(fmt::format(
        "{} is the working folder or lies above it and is not replaced; give another name", path_));
  for (const std::string& input : inputs_)
    if (is_or_holds(target_, plain(input)))
      throw UserError(
          fmt::format("{} is not replaced, since {} is read from it; give another name", path_, input));
  if (database) return;
  throw UserError(fmt::format(
      "{} is no database that `cortado data` made (a folder of {} alone) and is not replaced; give "
      "another name, or remove it yourself",
      path_, fmt::join(ours, ", ")));
}

void DatabaseFolder::make_parents() {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path parent = fs::path(target_).parent_path(); !fs::exists(parent, error) && parent.has_filename();
       parent = parent.parent_path())
    missing.push_back(parent);
  for (; !missing.empty(); missing.pop_back()) {
    if (fs::create_directory(missing.back(), error)) made_parents_.push_back(missing.back().string());
    if (error)
      throw UserError(fmt::format("cannot make folder {}: {}", missing.back().string(), error.message()));
  }
}

void DatabaseFolder::remove_growing() {
  std::error_code ignored;
  if (!growing_.empty()) fs::remove_all(growing_, ignored);
  growing_.clear();
  for (; !made_parents_.empty(); made_parents_.pop_back()) rmdir(made_parents_.back().c_str());  // if empty
}

void DatabaseFolder::finish() {
  sync_folder(growing_);
  check_replaced();  // an import takes its time: something may have come
  take_place();
  growing_.clear();
  made_parents_.clear();
  sync_folder(fs::path(target_).parent_path().string());
}

// The old database, where there is one, leaves its place in the same moment where the file system can do so.
// Removes only known files of it; files added since stay.
void DatabaseFolder::take_place() {
  std::error_code error;
  if (!fs::exists(target_, error)) return rename_or_throw(growing_, target_, path_);
  std::string old = growing_;
  if (renameat2(AT_FDCWD, growing_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) != 0) {
    old = temporary_name(target_);
    rename_or_throw(target_, old, path_);
    if (std::rename(growing_.c_str(), target_.c_str()) != 0) {
      const std::string reason = std::strerror(errno);
      rename_or_throw(old, target_, path_);
      throw UserError(fmt::format("cannot write database {}: {}", path_, reason));
    }
  }
  growing_.clear();
  for (const char* name : ours) fs::remove(fs::path(old) / name, error);
  if (rmdir(old.c_str()) != 0)
    throw UserError(fmt::format("{} is written; the database that it replaces is left in {}: {}", path_, old,
                                std::strerror(errno)));
}

}  // namespace cortado
