#include "cortado/base/file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

[[noreturn]] void fail(std::string_view action, const std::string& path) {
  throw UserError(fmt::format("cannot {} {}: {}", action, path, std::strerror(errno)));
}

// An open file descriptor; close() reports what a destructor cannot.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags, std::string_view action)
      : fd_(open(path.c_str(), flags, 0666)) {
    if (fd_ < 0) fail(action, path);
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void close(const std::string& path) {
    int fd = fd_;
    fd_ = -1;
    if (::close(fd) != 0) fail("write", path);
  }

 private:
  int fd_;
};

void sync(const std::string& path, int flags) {
  Descriptor file(path, flags, "write");
  // A file system without this operation (EINVAL) keeps what it can.
  if (fsync(file.get()) != 0 && errno != EINVAL) fail("write", path);
  file.close(path);
}

void write_all(const std::string& path, std::string_view content) {
  Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, "write");
  while (!content.empty()) {
    ssize_t written = ::write(file.get(), content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail("write", path);
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
  file.close(path);
}

}  // namespace

std::string read_file(const std::string& path) {
  Descriptor file(path, O_RDONLY | O_CLOEXEC, "read");
  struct stat status {};
  if (fstat(file.get(), &status) != 0) fail("read", path);
  if (S_ISDIR(status.st_mode)) throw UserError(fmt::format("cannot read {}: it is a folder", path));
  std::string content(static_cast<size_t>(status.st_size), '\0');
  size_t size = 0;
  while (true) {
    if (size == content.size()) content.resize(size + 65536);  // pipes, and files that grow
    ssize_t count = ::read(file.get(), content.data() + size, content.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("read", path);
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  content.resize(size);
  return content;
}

void write_file_atomically(const std::string& path,
                           const std::function<void(const std::string& temporary)>& write) {
  std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  try {
    write(temporary);
    sync(temporary, O_RDONLY | O_CLOEXEC);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) fail("write", path);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  std::string folder = std::filesystem::path(path).parent_path().string();
  sync(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void write_file_atomically(const std::string& path, std::string_view content) {
  write_file_atomically(path, [&](const std::string& temporary) { write_all(temporary, content); });
}

}  // namespace cortado
