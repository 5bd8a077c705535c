#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "cortado/job/wire.h"

namespace cortado {

// The running launcher, in a process group of its own: the terminal's Ctrl-C reaches this process alone. Its
// standard input is empty. It is asked to end when this process dies.
class Launcher {
 public:
  // `signals`: the caller's mask, which the launcher gets. Throws UserError when the command cannot be run.
  Launcher(const std::vector<std::string>& words, const JobAddress& address, const sigset_t& signals);
  ~Launcher();  // kills what is left of it
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  void signal(int number) const;
  // Its exit code (128 + n for signal n) once it has ended.
  std::optional<int> ended();

 private:
  pid_t pid_ = -1;
  std::optional<int> code_;
};

}  // namespace cortado
