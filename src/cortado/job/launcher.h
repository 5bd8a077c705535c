#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "cortado/job/launcher_guard.h"
#include "cortado/job/wire.h"

namespace cortado {

// The running launcher, in a process group of its own: the terminal's Ctrl-C reaches this process alone. Its
// standard input is empty, what it prints goes into pipes. It is ended when this process dies.
class Launcher {
 public:
  // `signals`: the caller's mask, which the launcher gets. Throws UserError when the command cannot be run.
  Launcher(const std::vector<std::string>& words, const JobAddress& address, const sigset_t& signals);
  ~Launcher();  // kills what is left of it
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  void signal(int number);
  // A process of this host that is to end with this one, even when the launcher is gone.
  void guard_rank(pid_t rank) { guard_->add_rank(rank); }
  // Its exit code (128 + n for signal n) once it has ended.
  std::optional<int> ended();
  // The signal that ended it, if one did, before it got any by signal(). SIGPIPE does not count: a launcher
  // dies of it when writing to a lost process.
  int killed_by_others() const { return signalled_ || killed_by_ == SIGPIPE ? 0 : killed_by_; }
  // The ends of the pipes, to be taken once.
  Socket output() { return std::move(output_); }
  Socket errors() { return std::move(errors_); }

 private:
  void begin_guard();

  pid_t pid_ = -1;
  std::optional<int> code_;
  int killed_by_ = 0;
  bool signalled_ = false;
  Socket output_, errors_;
  std::optional<LauncherGuard> guard_;
};

}  // namespace cortado
