#include "cortado/job/launcher.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

// In the child. Tells the errno of a failed exec through `failure`, which exec closes.
[[noreturn]] void become(char* const* words, const sigset_t& signals, int failure) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  execvp(words[0], words);
  int error = errno;
  (void)!write(failure, &error, sizeof error);
  _exit(127);
}

}  // namespace

Launcher::Launcher(const std::vector<std::string>& words, const JobAddress& address,
                   const sigset_t& signals) {
  setenv(job_variable, to_text(address).c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0)
    throw UserError(fmt::format("cannot start ranks: {}", std::strerror(errno)));
  pid_ = fork();
  if (pid_ == 0) become(arguments.data(), signals, pipe[1]);
  close(pipe[1]);
  int error = pid_ < 0 ? errno : 0;
  if (pid_ > 0 && read(pipe[0], &error, sizeof error) != sizeof error) error = 0;
  close(pipe[0]);
  unsetenv(job_variable);
  if (error == 0) return;
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  throw UserError(
      fmt::format("cannot start the ranks with '{}': {}; install an MPI or give another command with "
                  "--launch",
                  words[0], std::strerror(error)));
}

Launcher::~Launcher() {
  if (ended()) return;
  signal(SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Launcher::signal(int number) const {
  if (!code_) kill(-pid_, number);
}

std::optional<int> Launcher::ended() {
  int status = 0;
  if (!code_ && waitpid(pid_, &status, WNOHANG) == pid_)
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return code_;
}

}  // namespace cortado
