#pragma once

#include <csignal>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cortado/job/wire.h"

namespace cortado {

// SIGINT, SIGTERM, SIGHUP and SIGCHLD as a file, while it lives.
class SignalFile {
 public:
  SignalFile() {
    sigset_t set;
    sigemptyset(&set);
    for (int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, &before_);
    file_ = Socket(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  }
  ~SignalFile() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalFile(const SignalFile&) = delete;
  SignalFile& operator=(const SignalFile&) = delete;
  int fd() const { return file_.fd(); }
  const sigset_t& before() const { return before_; }
  // The next one; 0 when there is none.
  int take() {
    signalfd_siginfo info;
    return read(fd(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t before_;
  Socket file_;
};

}  // namespace cortado
