#include "cortado/report/event_file.h"

#include <bit>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

#include "cortado/base/command_files.h"
#include "cortado/base/crc32c.h"
#include "cortado/base/error.h"

namespace cortado {
namespace {

namespace fs = std::filesystem;

// A CRC that lies beside its bytes in a file is masked, lest the CRC of them all be that of none.
uint32_t masked(uint32_t crc) { return std::rotr(crc, 15) + 0xA282EAD8; }

template <typename T>
std::string bytes_of(T value) {
  static_assert(std::endian::native == std::endian::little, "a record's numbers are little-endian");
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, HOST_NAME_MAX);
  return name;
}

// TensorBoard takes files whose names hold "tfevents", in the order of their names. No two of a process, and
// no two of a second on one host, are equal.
std::string name_of(double now, int number) {
  return fmt::format("events.out.tfevents.{:010}.{}.{}.{}", static_cast<int64_t>(now), host_name(), getpid(),
                     number);
}

}  // namespace

double wall_time_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string event_record(const std::string& bytes) {
  const std::string length = bytes_of(static_cast<uint64_t>(bytes.size()));
  return length + bytes_of(masked(crc32c(length))) + bytes + bytes_of(masked(crc32c(bytes)));
}

EventFile::EventFile(const std::string& what, const std::string& folder) : what_(what) {
  make_folder(what, folder);
  const double now = wall_time_now();
  for (int number = 0; !file_; ++number) {
    path_ = (fs::path(folder) / name_of(now, number)).string();
    file_.reset(std::fopen(path_.c_str(), "wbx"));  // x: none that is there
    if (!file_ && errno != EEXIST) fail();
  }
  record(version_message(now));
}

void EventFile::fail() const {
  throw UserError(fmt::format("{}: {} cannot be written: {}", what_, path_, std::strerror(errno)));
}

void EventFile::record(const std::string& message) {
  const std::string bytes = event_record(message);
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size() ||
      std::fflush(file_.get()) != 0)
    fail();
}

void EventFile::restart(int64_t step) { record(restart_message(wall_time_now(), step)); }

void EventFile::write(const Event& event) { record(event_message(event)); }

}  // namespace cortado
