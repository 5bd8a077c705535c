#include "cortado/apply/array_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

#include "cortado/base/error.h"
#include "cortado/base/file.h"

namespace cortado {

namespace fs = std::filesystem;

namespace {

constexpr int64_t most_head_bytes = 64 << 10;

}  // namespace

ArrayFile::ArrayFile(const std::string& path, bool replace, LayOut lay_out,
                     const std::vector<FeatureArray>& arrays)
    : path_(path), temporary_(temporary_name(path)) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw UserError(fmt::format("{} is a folder; give another name", path));
  if (fs::exists(path, ignored) && !replace)
    throw UserError(fmt::format("{} exists already; give another name, or --force to replace it", path));
  // Nothing of another's is written over.
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail();
  try {
    check_room(arrays);
    ArrayLayout layout = lay_out(path, temporary_, arrays);
    head_ = std::move(layout.head);
    next_ = std::move(layout.begins);
  } catch (const UserError&) {
    close(descriptor_);
    fs::remove(temporary_, ignored);
    throw;
  }
}

// HDF5 does not survive a full disk; and what is known now need not be found after hours.
void ArrayFile::check_room(const std::vector<FeatureArray>& arrays) {
  int64_t bytes = 0;
  for (const FeatureArray& array : arrays) bytes += array.shape.size() * static_cast<int64_t>(sizeof(float));
  const bool asked = fallocate(descriptor_, 0, 0, bytes + most_head_bytes) == 0;
  if (!asked && errno != EOPNOTSUPP) fail();
  if (ftruncate(descriptor_, 0) != 0) fail();
}

ArrayFile::~ArrayFile() {
  close(descriptor_);
  std::error_code ignored;
  fs::remove(temporary_, ignored);
}

void ArrayFile::fail() const {
  throw UserError(fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
}

void ArrayFile::write(int64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(descriptor_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
}

void ArrayFile::add(size_t array, std::span<const float> rows) {
  write(next_[array], {reinterpret_cast<const char*>(rows.data()), rows.size_bytes()});
  next_[array] += static_cast<int64_t>(rows.size_bytes());
}

void ArrayFile::finish() {
  write(0, head_);
  if (fsync(descriptor_) != 0 && errno != EINVAL) fail();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  const std::string folder = fs::path(path_).parent_path().string();
  sync_folder(folder.empty() ? "." : folder);
}

}  // namespace cortado
