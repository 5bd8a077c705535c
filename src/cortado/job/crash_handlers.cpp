#include "cortado/job/crash_handlers.h"

#include <csignal>
#include <unistd.h>

#include "cortado/base/crash_guard.h"
#include "cortado/base/error.h"

namespace cortado {
namespace {

void end_process(int signal) {
  const std::string_view line = CrashGuard::line();
  if (line.empty()) {
    std::signal(signal, SIG_DFL);
    raise(signal);
    return;
  }
  (void)!write(STDERR_FILENO, line.data(), line.size());
  _exit(static_cast<int>(ExitCode::user_error));
}

void install_handlers() {
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) {
    struct sigaction action {};
    action.sa_handler = end_process;
    action.sa_flags = SA_NODEFER;
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace

void end_process_on_guarded_crash() { CrashGuard::before_next(install_handlers); }

}  // namespace cortado
