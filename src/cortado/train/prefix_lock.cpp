#include "cortado/train/prefix_lock.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "cortado/base/error.h"
#include "cortado/base/file.h"

namespace cortado {
namespace {

constexpr std::string_view first_words = "cortado training, ";

std::string this_process() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return fmt::format("{}process {} on {}\n", first_words, getpid(), host);
}

// What the owner wrote, without the words that all begin with; empty where it is about to write.
std::string owner_in(int file, const std::string& path) {
  char bytes[512];
  const ssize_t size = pread(file, bytes, sizeof bytes, 0);
  const std::string_view text(bytes, static_cast<size_t>(std::max<ssize_t>(0, size)));
  if (!text.empty() && !text.starts_with(first_words))
    throw UserError(
        fmt::format("{} is in the way: it is no lock of cortado's; give another snapshot_prefix", path));
  return std::string(
      text.substr(std::min(text.size(), first_words.size()), text.find('\n') - first_words.size()));
}

}  // namespace

PrefixLock::PrefixLock(const std::string& prefix, const Notices& notice) : path_(prefix + "_iter.lock") {
  try {
    while (!open_and_lock(prefix, notice)) {
    }
  } catch (...) {
    if (file_ >= 0) close(file_);
    throw;
  }
}

// The file goes before the lock does: who waits for neither never finds a file that nobody owns.
PrefixLock::~PrefixLock() {
  unlink(path_.c_str());
  close(file_);
}

// False when the file that was locked is no longer the one of this name: its owner was just ending.
bool PrefixLock::open_and_lock(const std::string& prefix, const Notices& notice) {
  const auto fail = [&] {
    throw UserError(
        fmt::format("snapshot_prefix {}: cannot write {}: {}", prefix, path_, std::strerror(errno)));
  };
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file_ < 0) fail();
  owner_in(file_, path_);  // or it is another program's
  take(prefix, notice);
  struct stat locked {};
  struct stat named {};
  const bool same = fstat(file_, &locked) == 0 && stat(path_.c_str(), &named) == 0 &&
                    locked.st_ino == named.st_ino && locked.st_dev == named.st_dev;
  if (!same) {
    close(std::exchange(file_, -1));
    return false;
  }
  const std::string text = this_process();
  if (ftruncate(file_, 0) != 0 || pwrite(file_, text.data(), text.size(), 0) != std::ssize(text)) fail();
  return true;
}

void PrefixLock::take(const std::string& prefix, const Notices& notice) {
  using namespace std::chrono_literals;
  int reason = 0;
  for (int tries = 0; tries < 20; ++tries) {  // its owner may be on its way out
    if (flock(file_, LOCK_EX | LOCK_NB) == 0) return remove_left_temporaries(prefix + "_iter_");
    reason = errno;
    if (reason != EWOULDBLOCK) break;
    std::this_thread::sleep_for(50ms);
  }
  if (reason != EWOULDBLOCK) {
    if (notice)
      notice(fmt::format("warning: {} cannot be locked ({}): let no other training use this prefix", path_,
                         std::strerror(reason)));
    return;
  }
  const std::string owner = owner_in(file_, path_);
  throw UserError(fmt::format(
      "snapshot_prefix {}: another training{} writes snapshots of this prefix; wait for its end, or set "
      "snapshot_prefix to another",
      prefix, owner.empty() ? "" : " (" + owner + ")"));
}

}  // namespace cortado
