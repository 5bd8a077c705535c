#pragma once

#include <string>
#include <string_view>

namespace cortado {

// While it lives, the calling thread is inside a library that may crash on a damaged file. A program that
// owns its process may install handlers of SIGSEGV, SIGBUS, SIGFPE and SIGABRT that look at line(): the
// command does (job/crash_handlers.h). Guards may nest; the inner one speaks.
class CrashGuard {
 public:
  explicit CrashGuard(const std::string& path);
  ~CrashGuard();
  CrashGuard(const CrashGuard&) = delete;
  CrashGuard& operator=(const CrashGuard&) = delete;

  // The error, with a newline, that names the file which the calling thread reads; empty: it reads none. For
  // signal handlers, too.
  static std::string_view line();

  // Calls `install` once, before the next guard: libraries that the process starts until then may install
  // handlers of their own. Null: nothing.
  static void before_next(void (*install)());

 private:
  std::string message_;
  const CrashGuard* outer_;
};

}  // namespace cortado
