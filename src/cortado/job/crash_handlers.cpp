#include "cortado/job/crash_handlers.h"

#include <csignal>
#include <unistd.h>

#include "cortado/base/crash_guard.h"
#include "cortado/base/error.h"

namespace cortado {
namespace {

struct Handled {
  int signal;
  struct sigaction before;  // whose handler a crash outside a guard is for
};
Handled handled[] = {{SIGSEGV, {}}, {SIGBUS, {}}, {SIGFPE, {}}, {SIGABRT, {}}};

void end_process(int signal) {
  const std::string_view line = CrashGuard::line();
  if (line.empty()) {
    for (const Handled& one : handled)
      if (one.signal == signal) sigaction(signal, &one.before, nullptr);
    raise(signal);
    return;
  }
  (void)!write(STDERR_FILENO, line.data(), line.size());
  _exit(static_cast<int>(ExitCode::user_error));
}

void install_handlers() {
  for (Handled& one : handled) {
    struct sigaction action {};
    action.sa_handler = end_process;
    action.sa_flags = SA_NODEFER;
    sigaction(one.signal, &action, &one.before);
  }
}

}  // namespace

void end_process_on_guarded_crash() { CrashGuard::before_next(install_handlers); }

}  // namespace cortado
