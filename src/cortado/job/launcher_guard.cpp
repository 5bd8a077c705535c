#include "cortado/job/launcher_guard.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

constexpr unsigned seconds_to_end = 2;  // once asked

// Runs in the child of a process that may have threads: system calls alone. Holds nothing but its end of the
// pipe, so that nobody takes it for the process that is gone.
[[noreturn]] void guard(int pipe, pid_t launcher) {
  setpgid(0, 0);
  prctl(PR_SET_NAME, "cortado-guard");
  dup2(pipe, STDIN_FILENO);
  close_range(STDIN_FILENO + 1, ~0U, 0);
  char word = 0;
  ssize_t got = 0;
  do {
    got = read(STDIN_FILENO, &word, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 0) _exit(0);
  kill(-launcher, SIGTERM);
  sleep(seconds_to_end);
  kill(-launcher, SIGKILL);
  _exit(0);
}

}  // namespace

LauncherGuard::LauncherGuard(pid_t launcher) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) == 0) {
    const Socket read_end(ends[0]);
    pipe_ = Socket(ends[1]);
    pid_ = fork();
    if (pid_ == 0) guard(read_end.fd(), launcher);
  }
  if (pid_ < 0) throw UserError(fmt::format("cannot start ranks: {}", std::strerror(errno)));
}

LauncherGuard::~LauncherGuard() {
  (void)!write(pipe_.fd(), "", 1);
  waitpid(pid_, nullptr, 0);
}

}  // namespace cortado
