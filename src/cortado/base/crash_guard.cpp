#include "cortado/base/crash_guard.h"

#include <atomic>
#include <csignal>
#include <fmt/format.h>
#include <unistd.h>

#include "cortado/base/error.h"
#include "cortado/base/text.h"

namespace cortado {
namespace {

// What the handler writes, as plain memory: it must not call anything that allocates.
thread_local const char* line = nullptr;
thread_local size_t line_bytes = 0;
thread_local const CrashGuard* innermost = nullptr;

void end_process(int signal) {
  if (!line) {
    std::signal(signal, SIG_DFL);
    raise(signal);
    return;
  }
  (void)!write(STDERR_FILENO, line, line_bytes);
  _exit(static_cast<int>(ExitCode::user_error));
}

std::atomic<bool> handlers_wanted = false;

void install_handlers() {
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) {
    struct sigaction action {};
    action.sa_handler = end_process;
    action.sa_flags = SA_NODEFER;
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace

void CrashGuard::end_process_on_crash() { handlers_wanted = true; }

CrashGuard::CrashGuard(const std::string& path)
    : message_(
          "cortado: error: " +
          message_line(path + ": damaged: the library that reads it crashed on it; make or copy it anew") +
          "\n"),
      outer_(innermost) {
  if (handlers_wanted) {
    static const bool installed = (install_handlers(), true);
    (void)installed;
  }
  innermost = this;
  line = message_.data();
  line_bytes = message_.size();
}

CrashGuard::~CrashGuard() {
  innermost = outer_;
  line = outer_ ? outer_->message_.data() : nullptr;
  line_bytes = outer_ ? outer_->message_.size() : 0;
}

}  // namespace cortado
