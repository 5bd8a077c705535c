#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "cortado/report/event_message.h"

namespace cortado {

// A new file of events in a folder that TensorBoard watches. Each event is in the file when write() returns.
class EventFile {
 public:
  // Makes the folder where it is not there. Throws UserError that begins with `what`, the option, and names
  // the folder or the file, as write() does.
  EventFile(const std::string& what, const std::string& folder);
  // The training goes on from `step`.
  void restart(int64_t step);
  void write(const Event& event);

 private:
  void record(const std::string& message);
  [[noreturn]] void fail() const;

  std::string what_, path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, std::fclose};
};

// Seconds since 1970.
double wall_time_now();

// A record of TensorFlow's files (TFRecord): the length of `bytes` (8 bytes, little-endian), its masked
// CRC-32C (4), the bytes, and theirs.
std::string event_record(const std::string& bytes);

}  // namespace cortado
