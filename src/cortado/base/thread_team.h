#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <sched.h>
#include <thread>
#include <type_traits>
#include <vector>

#include "cortado/base/units.h"

namespace cortado {

// Compute threads for cores that others use, too: helpers share the work of the thread that calls them. It
// takes what parts no helper has begun, and waits for no other: a helper that has no core at the moment
// delays nobody, where OpenMP's threads all meet at the end of every parallel region.
class ThreadTeam {
 public:
  // `own`: a processor, in a Scope the caller's alone among the threads of the team. A helper that the system
  // wakes there would take it from the caller, and a caller that has it waits longer before it sleeps: an
  // idle core draws a neighbour to it. Throws UserError where the system gives this process fewer threads.
  explicit ThreadTeam(int threads, std::optional<int> own = {});
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // Calls work(i) once for each i in [0, parts), on any of the threads, and returns when all calls have
  // ended. In them compute_threads() is 1, and denormals are what they are for the caller; its MXCSR register
  // notes the floating-point exceptions of all. One caller at a time; `work` must not throw.
  template <typename Work>
  void run(int parts, Work&& work) {
    using Function = std::remove_reference_t<Work>;
    run_job(parts, {[](const void* function, int part) {
                      (*static_cast<Function*>(const_cast<void*>(function)))(part);
                    },
                    &work});
  }

  // How long its helpers together were ready but had no core, since it began (proc(5), schedstat).
  Seconds ready_without_core() const;

  // What the parallel loops of the calling thread run on; null: OpenMP's threads.
  static ThreadTeam* current();

  std::optional<int> own() const { return own_; }
  // The processors that are left to helpers.
  const cpu_set_t& others() const { return others_; }

  // Lets the parallel loops of the calling thread run on `team` while it lives.
  class Scope {
   public:
    explicit Scope(ThreadTeam* team);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ThreadTeam* const before_;
    std::optional<cpu_set_t> processors_before_;  // where the caller is kept on its own
  };

 private:
  struct Job {
    void (*call)(const void* function, int part) = nullptr;
    const void* function = nullptr;
  };

  void run_job(int parts, Job job);
  int take_part();
  void help_with(int part);
  void help();
  void leave();

  const std::optional<int> own_;
  const cpu_set_t others_;

  Job job_;
  unsigned float_mode_ = 0;              // of the caller: its MXCSR register
  std::atomic<unsigned> exceptions_{0};  // that helpers' registers have noted in the job
  std::atomic<uint64_t> jobs_left_{0};   // number of the job, then 16 bits: its parts that nobody has begun
  // Threads sleep on these two until they change.
  std::atomic<uint32_t> jobs_{0};        // so far
  std::atomic<uint32_t> unfinished_{0};  // parts of the job
  std::atomic<int> sleeping_helpers_{0};
  std::atomic<bool> caller_sleeps_{false}, leave_{false};
  std::vector<std::atomic<int>> ids_;  // of the helpers: the system's
  std::vector<std::jthread> helpers_;
};

}  // namespace cortado
