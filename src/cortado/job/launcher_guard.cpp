#include "cortado/job/launcher_guard.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

constexpr int looks = 40;             // at what the launcher has started, from when it was asked to end
constexpr int often = 50;             // milliseconds between two looks
constexpr int most_processes = 1000;  // as many files as a process may have open, about
constexpr pid_t launcher_ended = 0;   // in place of a rank

// All below runs in the child of a process that may have threads: it takes no memory and no locks.

// Processes, by files that mean no others once these have ended.
class Processes {
 public:
  void add(pid_t process) {
    for (int i = 0; i < count_; ++i)
      if (processes_[i] == process) return;
    const long file = count_ < most_processes ? syscall(SYS_pidfd_open, process, 0) : -1;
    if (file < 0) return;
    processes_[count_] = process;
    files_[count_++] = static_cast<int>(file);
  }

  // Adds what `process` has started, and what these have. Nothing where the kernel does not tell.
  void add_started_by(pid_t process) {
    add_children(process);
    for (int i = 0; i < count_; ++i) add_children(processes_[i]);
  }

  void kill() const {
    for (int i = 0; i < count_; ++i) syscall(SYS_pidfd_send_signal, files_[i], SIGKILL, nullptr, 0);
  }

 private:
  // /proc/N/task/N/children: numbers, each with a space after it.
  void add_children(pid_t process) {
    char path[64], text[4096];
    *fmt::format_to(path, "/proc/{}/task/{}/children", process, process) = 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const ssize_t size = read(file, text, sizeof text);
    close(file);
    pid_t child = 0;
    for (ssize_t i = 0; i < size; ++i) {
      if (text[i] != ' ') {
        child = 10 * child + (text[i] - '0');
      } else {
        add(child);
        child = 0;
      }
    }
  }

  int files_[most_processes];
  pid_t processes_[most_processes];
  int count_ = 0;
};

// Hears of ranks until this process's parent is gone. Returns whether any has come. Until the first one
// comes, looks at what the launcher has started: where the launcher is killed before that, what it started
// may wait for it for good.
bool hear_of_ranks(pid_t launcher, Processes& started) {
  for (bool any = false;;) {
    pollfd heard{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (poll(&heard, 1, any ? -1 : often) == 0) {
      started.add_started_by(launcher);
      continue;
    }
    pid_t rank = 0;
    const ssize_t got = read(STDIN_FILENO, &rank, sizeof rank);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return any;
    if (rank == launcher_ended) {
      if (!any) started.kill();
      _exit(0);
    }
    any = true;
    started.add(rank);
  }
}

// Holds nothing but its socket, so that nobody takes it for the process that is gone.
[[noreturn]] void guard(int socket, pid_t launcher) {
  setpgid(0, 0);
  prctl(PR_SET_NAME, "cortado-guard");
  dup2(socket, STDIN_FILENO);
  close_range(STDIN_FILENO + 1, ~0U, 0);
  Processes started;
  const bool any = hear_of_ranks(launcher, started);
  started.add_started_by(launcher);
  if (any) kill(-launcher, SIGTERM);
  for (int look = 0; any && look < looks; ++look) {
    poll(nullptr, 0, often);
    started.add_started_by(launcher);
  }
  kill(-launcher, SIGSTOP);  // so that it starts no more
  poll(nullptr, 0, often);
  started.add_started_by(launcher);
  kill(-launcher, SIGKILL);
  started.kill();
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
