#include "cortado/job/guardian.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

// Between two looks at the child and at the launcher's process, and how long the child may say that the
// latter is gone.
constexpr timespec between_looks{.tv_sec = 0, .tv_nsec = 50'000'000};
constexpr unsigned seconds_to_say_so = 3;

pid_t guardian = 0;  // of this process

pid_t parent_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');  // "12 (name) S 11 ..."
  if (name_end == std::string::npos || name_end + 4 >= line.size()) return 0;
  return static_cast<pid_t>(std::atoi(line.c_str() + name_end + 4));
}

[[noreturn]] void guard(pid_t child) {
  prctl(PR_SET_NAME, "cortado-guard");
  // Those for the rank reach it by the process that watches it.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE}) std::signal(signal, SIG_IGN);
  const pid_t launcher = getppid();
  while (true) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    if (ended < 0 && errno != EINTR) _exit(static_cast<int>(ExitCode::peer_error));
    if (getppid() != launcher) {
      sleep(seconds_to_say_so);
      _exit(static_cast<int>(ExitCode::peer_error));
    }
    nanosleep(&between_looks, nullptr);
  }
}

}  // namespace

void run_under_guardian() {
  const pid_t self = getpid(), child = fork();
  if (child > 0) guard(child);
  if (child < 0) return;  // then it is killed with the others
  guardian = self;
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guardian) _exit(static_cast<int>(ExitCode::peer_error));
}

pid_t launchers_process() {
  if (guardian == 0) return getppid();
  return getppid() == guardian ? parent_of(guardian) : 0;
}

}  // namespace cortado
