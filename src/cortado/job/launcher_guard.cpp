#include "cortado/job/launcher_guard.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

constexpr unsigned seconds_to_end = 2;  // once asked
constexpr int most_ranks = 1000;        // that are killed: as many files as a process may have open, about
constexpr pid_t launcher_ended = 0;     // in place of a rank

// Reads of ranks until this process's parent is gone. Returns how many files of processes it has opened.
int hear_of_ranks(int* opened) {
  int count = 0;
  while (true) {
    pid_t rank = 0;
    const ssize_t got = read(STDIN_FILENO, &rank, sizeof rank);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return count;
    if (rank == launcher_ended) _exit(0);
    const long file = count < most_ranks ? syscall(SYS_pidfd_open, rank, 0) : -1;
    if (file >= 0) opened[count++] = static_cast<int>(file);
  }
}

// Runs in the child of a process that may have threads: system calls alone. Holds nothing but its socket, so
// that nobody takes it for the process that is gone.
[[noreturn]] void guard(int socket, pid_t launcher) {
  setpgid(0, 0);
  prctl(PR_SET_NAME, "cortado-guard");
  dup2(socket, STDIN_FILENO);
  close_range(STDIN_FILENO + 1, ~0U, 0);
  int ranks[most_ranks];
  const int count = hear_of_ranks(ranks);
  kill(-launcher, SIGTERM);
  sleep(seconds_to_end);
  kill(-launcher, SIGKILL);
  for (int i = 0; i < count; ++i) syscall(SYS_pidfd_send_signal, ranks[i], SIGKILL, nullptr, 0);
  _exit(0);
}

}  // namespace

LauncherGuard::LauncherGuard(pid_t launcher) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0) {
    const Socket guards(ends[0]);
    socket_ = Socket(ends[1]);
    pid_ = fork();
    if (pid_ == 0) guard(guards.fd(), launcher);
  }
  if (pid_ < 0) throw UserError(fmt::format("cannot start ranks: {}", std::strerror(errno)));
}

// Where the guard was killed nobody hears it.
void LauncherGuard::add_rank(pid_t rank) { send(socket_.fd(), &rank, sizeof rank, MSG_NOSIGNAL); }

LauncherGuard::~LauncherGuard() {
  add_rank(launcher_ended);
  waitpid(pid_, nullptr, 0);
}

}  // namespace cortado
