#include "cortado/job/launcher.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw UserError(fmt::format("cannot start ranks: {}", std::strerror(errno)));
    read = Socket(ends[0]);
    write = Socket(ends[1]);
  }
  Socket read, write;
};

// Runs in the child. Writes the errno of a failed exec to `failure`, which exec closes.
[[noreturn]] void become(char* const* words, const sigset_t& signals, int output, int errors, int failure) {
  setpgid(0, 0);
  int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
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
  Pipe output, errors, failure;
  pid_ = fork();
  if (pid_ == 0) become(arguments.data(), signals, output.write.fd(), errors.write.fd(), failure.write.fd());
  failure.write.close();
  int error = pid_ < 0 ? errno : 0;
  if (pid_ > 0 && read(failure.read.fd(), &error, sizeof error) != sizeof error) error = 0;
  output_ = std::move(output.read);
  errors_ = std::move(errors.read);
  unsetenv(job_variable);
  if (error == 0) {
    begin_guard();
    return;
  }
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  throw UserError(
      fmt::format("cannot start the ranks with '{}': {}; install an MPI or give another command with "
                  "--launch",
                  words[0], std::strerror(error)));
}

void Launcher::begin_guard() {
  try {
    guard_.emplace(pid_);
  } catch (...) {
    signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
    throw;
  }
}

Launcher::~Launcher() {
  if (ended()) return;
  signal(SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Launcher::signal(int number) {
  if (ended()) return;
  signalled_ = true;
  kill(-pid_, number);
}

std::optional<int> Launcher::ended() {
  int status = 0;
  if (code_ || waitpid(pid_, &status, WNOHANG) != pid_) return code_;
  if (WIFSIGNALED(status)) killed_by_ = WTERMSIG(status);
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + killed_by_;
  return code_;
}

}  // namespace cortado
