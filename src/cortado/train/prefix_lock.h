#pragma once

#include <string>

#include "cortado/base/notices.h"

namespace cortado {

// Lets one training at a time write snapshots of a prefix. While it lives, the file PREFIX_iter.lock is
// there, locked, with process and host of its owner. The system takes the lock from a process that ends in
// whatever way, so a file that a killed one left stops nobody. Who gets it removes temporary files of
// snapshots that killed processes left.
class PrefixLock {
 public:
  // Throws UserError: another training has it (its process and host are named), the file cannot be made, or
  // it is another program's. Where the file system knows no locks, reports that by `notice` and goes on.
  explicit PrefixLock(const std::string& prefix, const Notices& notice = {});
  ~PrefixLock();
  PrefixLock(const PrefixLock&) = delete;
  PrefixLock& operator=(const PrefixLock&) = delete;

 private:
  bool open_and_lock(const std::string& prefix, const Notices& notice);
  void take(const std::string& prefix, const Notices& notice);

  std::string path_;
  int file_ = -1;
};

}  // namespace cortado
