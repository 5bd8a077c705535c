#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "cortado/base/thread_team.h"
#include "cortado/base/units.h"

namespace cortado {

// Makes the compute threads (OpenMP's) wait for work by spinning while they have their cores
// to themselves, and by sleeping while others want the cores, too. A thread that spins wastes the core that
// the thread it waits for may need; a thread that sleeps is tens of microseconds late at each parallel
// region. Beside others, loops of our own run on a ThreadTeam, which waits for no thread that has no core;
// OpenMP's threads are left to libraries. The calling thread has its core for itself among the compute
// threads, as long as there are cores for all of them and it does not mostly wait for that one: a program
// whose core is fixed may be there. OMP_WAIT_POLICY and GOMP_SPINCOUNT in the environment are obeyed instead.
class CoreSharing {
 public:
  using Delay = std::function<Seconds()>;
  // `delay` returns how long the caller's compute threads together were ready but had no core, since they
  // began; `own_delay`, how long the caller was.
  explicit CoreSharing(Delay delay = ready_without_core, Delay own_delay = caller_without_core);
  ~CoreSharing();
  CoreSharing(const CoreSharing&) = delete;
  CoreSharing& operator=(const CoreSharing&) = delete;

  // Looks, at most ten times a second, how long the caller's compute threads were ready but had no core since
  // the last look, and decides how they wait from now on. Call it between iterations, always on one thread.
  void look();

  // Whether the compute threads sleep while they wait.
  bool sleeping() const { return surplus_ != nullptr; }

  // What loops are to run on until the next look (ThreadTeam::Scope); null: OpenMP's threads.
  ThreadTeam* team() const { return team_.get(); }

  // The sum over the caller's compute threads, and of the caller alone (proc(5), schedstat).
  static Seconds ready_without_core();
  static Seconds caller_without_core();

 private:
  class SurplusThreads;

  Seconds delay() const;
  void adapt(double delayed);
  void adapt_place(double own_delayed);
  void share();
  void make_team(bool apart);
  void leave_off();

  const bool decided_by_environment_;
  std::chrono::steady_clock::time_point last_look_;
  const Delay delay_, own_delay_;
  Seconds last_delay_, last_own_delay_;
  int beside_looks_ = 0, quiet_looks_ = 0;  // in a row, that found others at work, or none
  int crowded_looks_ = 0;                   // in a row, that found the caller's core taken
  int looks_asleep_ = 0,
      patience_ = 0;     // looks since threads sleep, and after how many to try how it is to spin
  bool trying_ = false;  // since the last look
  std::unique_ptr<SurplusThreads> surplus_;
  std::unique_ptr<ThreadTeam> team_;
};

}  // namespace cortado
