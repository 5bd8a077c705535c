#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "cortado/job/wire.h"

namespace cortado {

// Passes what comes out of a pipe on to this process's standard output or error, and keeps the launcher's own
// words (LauncherWords) back. It has a thread of its own, since a reader that stands still may hold it up.
class Output {
 public:
  // `to`: STDOUT_FILENO or STDERR_FILENO.
  Output(Socket from, int to);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // The launcher has ended: waits until what it left has been passed on, at most so long.
  void finish(std::chrono::milliseconds most);
  // The launcher's words, as far as they have come.
  std::string kept() const;
  // True while its reader takes nothing.
  bool held_up() const;

 private:
  struct State;
  static void pass_on(const std::shared_ptr<State>& state);
  std::shared_ptr<State> state_;  // the thread's too: it may be held up for longer than this lives
};

}  // namespace cortado
