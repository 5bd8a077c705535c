#pragma once

#include <string>

namespace cortado {

// While it lives, the calling thread is inside a library that may crash on a damaged file. In a process that
// has called end_process_on_crash(), a SIGSEGV, SIGBUS, SIGFPE or SIGABRT of this thread then ends the
// process with exit code 2 and one line that names the file: its memory cannot be trusted any more, so
// nothing else runs, and no exception is thrown. Guards may nest; the inner one speaks.
class CrashGuard {
 public:
  explicit CrashGuard(const std::string& path);
  ~CrashGuard();
  CrashGuard(const CrashGuard&) = delete;
  CrashGuard& operator=(const CrashGuard&) = delete;

  // For a program that owns its process: guards install signal handlers from now on.
  static void end_process_on_crash();

 private:
  std::string message_;
  const CrashGuard* outer_;
};

}  // namespace cortado
