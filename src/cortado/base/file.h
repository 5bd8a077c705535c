#pragma once

#include <string>
#include <string_view>

#include "cortado/base/error.h"

namespace cortado {

// What is in a file cannot be trusted: it is truncated, or a checksum does not fit. The message names it.
class DamagedFile : public UserError {
 public:
  using UserError::UserError;
};

// The whole content of a file, or of a pipe or device that ends within 256 MiB. Throws UserError naming the
// file and the system's reason.
std::string read_file(const std::string& path);

// A name beside `path` that nobody has, "NAME.PID-RANDOM.tmp": for what is renamed to `path` when it is
// whole.
std::string temporary_name(const std::string& path);

// Removes files of such names that begin with `path` where no process of this host has their PID: killed
// writers left them. To be called where processes of other hosts write none of that name.
void remove_left_temporaries(const std::string& path);

// Replaces `path` by what is written here: a file beside it that is synced and renamed by finish(), and
// removed without it. A kill or a full disk at any moment leaves the old file or the new one, whole; a kill
// may leave the temporary one, too. Where `path` is a link, what it leads to is replaced; a device or a pipe
// is written as it is. Throws UserError naming `path` and the system's reason.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::string_view bytes);
  void finish();

 private:
  void open_temporary(unsigned mode);
  [[noreturn]] void fail() const;

  std::string path_;                // for messages
  std::string target_, temporary_;  // temporary_ is empty where there is none
  int file_ = -1;
};

// The same with content at hand.
void write_file_atomically(const std::string& path, std::string_view content);

// Syncs a folder, so that names made or changed in it outlive a power cut.
void sync_folder(const std::string& folder);

}  // namespace cortado
