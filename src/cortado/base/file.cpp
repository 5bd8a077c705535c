#include "cortado/base/file.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <random>
#include <regex>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace cortado {
namespace {

constexpr size_t most_of_a_stream = size_t{256} << 20;

[[noreturn]] void fail(std::string_view action, const std::string& path) {
  throw UserError(fmt::format("cannot {} {}: {}", action, path, std::strerror(errno)));
}

// An open file, closed with its owner.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags, std::string_view action) : fd_(open(path.c_str(), flags)) {
    if (fd_ < 0) fail(action, path);
  }
  ~Descriptor() { close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// A file system without this operation (EINVAL) keeps what it can.
bool sync(int file) { return fsync(file) == 0 || errno == EINVAL; }

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// Returns where links lead; `path` itself where nothing is there.
std::string resolved(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), std::free);
  return real ? real.get() : path;
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
    if (!S_ISREG(status.st_mode) && size > most_of_a_stream)
      throw UserError(fmt::format("cannot read {}: it is no file, and gives more than {} MiB", path,
                                  most_of_a_stream >> 20));
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

std::string temporary_name(const std::string& path) {
  constexpr size_t longest_name = 200;  // leaves room below the 255 bytes that file systems allow
  const std::filesystem::path whole(path);
  std::random_device random;
  const uint64_t number = uint64_t{random()} << 32 | random();
  return (whole.parent_path() / fmt::format("{}.{}-{:016x}.tmp",
                                            whole.filename().string().substr(0, longest_name), getpid(),
                                            number))
      .string();
}

void remove_left_temporaries(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::string begin = whole.filename().string();
  static const std::regex end(R"(.*\.([1-9][0-9]{0,9})-[0-9a-f]{16}\.tmp)");
  std::error_code error;  // what cannot be seen or removed stays
  const std::filesystem::directory_iterator entries(whole.has_parent_path() ? whole.parent_path() : ".",
                                                    error);
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    std::smatch parts;
    if (!name.starts_with(begin) || !entry.is_regular_file(error) || entry.is_symlink(error)) continue;
    if (!std::regex_match(name, parts, end)) continue;
    const int64_t process = std::stoll(parts[1]);
    const bool gone = process <= std::numeric_limits<pid_t>::max() &&
                      kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH;
    if (gone) std::filesystem::remove(entry.path(), error);
  }
}

FileWriter::FileWriter(const std::string& path) : path_(path), target_(resolved(path)) {
  struct stat status {};
  const bool there = stat(path.c_str(), &status) == 0;
  if (there && S_ISDIR(status.st_mode)) throw UserError(fmt::format("cannot write {}: it is a folder", path));
  // /dev/stdout may be a file that others hold open.
  const bool as_it_is = there && (!S_ISREG(status.st_mode) || path.starts_with("/dev/"));
  if (as_it_is)
    file_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  else
    open_temporary(there ? status.st_mode & 0777 : 0);
  if (file_ < 0) fail();
}

// Opens it with the permissions that the replaced file has; 0: those of a new one.
void FileWriter::open_temporary(unsigned mode) {
  do {
    temporary_ = temporary_name(target_);
    file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (file_ < 0 && errno == EEXIST);
  if (file_ >= 0 && mode != 0) (void)!fchmod(file_, mode);  // where that is not to be had, the usual ones do
}

FileWriter::~FileWriter() {
  if (file_ >= 0) close(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void FileWriter::fail() const { cortado::fail("write", path_); }

void FileWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void FileWriter::finish() {
  if (!temporary_.empty() && !sync(file_)) fail();
  const int file = std::exchange(file_, -1);
  if (close(file) != 0) fail();
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail();
  temporary_.clear();
  sync_folder(folder_of(target_));
}

void write_file_atomically(const std::string& path, std::string_view content) {
  FileWriter file(path);
  file.write(content);
  file.finish();
}

void sync_folder(const std::string& folder) {
  const Descriptor open_folder(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, "write");
  if (!sync(open_folder.get())) fail("write", folder);
}

}  // namespace cortado
