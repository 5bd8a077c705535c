#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "cortado/program/step.h"

namespace cortado {

// The communication lane: a progress engine on a thread of its own (Aluminum's design). It starts its steps
// in order, each as soon as what it waits for has ended. It moves all steps under way until they are
// complete, those needed soonest first. The compute lane runs on the caller's thread. Each lane waits here
// for steps of the other.
class LaneThread {
 public:
  struct Steps {
    std::vector<StepIndex> order;  // this lane's steps
    // Step::waits, Step::waits_before, Step::carried and Step::needed of each step of the program.
    IndexedVector<StepIndex, std::vector<StepIndex>> waits, waits_before;
    IndexedVector<StepIndex, bool> carried;
    IndexedVector<StepIndex, int> needed;
    std::function<void(StepIndex)> start;  // begins a step
    // Moves a step that was started; true when it has ended. `first`: none under way is needed sooner.
    std::function<bool(StepIndex, bool first)> finished;
    // Null, or called once all steps of an iteration, but for carried ones, have ended.
    std::function<void()> ended;
  };
  explicit LaneThread(Steps steps);
  ~LaneThread();

  // Runs the lane's steps of an iteration. Carried steps go on meanwhile.
  void start();
  // Waits until step `step` may begin. Rethrows what the lane threw. Called by the compute lane.
  void wait_for(StepIndex step);
  // Marks a step of the compute lane as done.
  void done(StepIndex step);
  // Leaves out the steps that have not begun.
  void leave_rest();
  // Waits until the lane has run all steps of start(), except carried ones. Rethrows what the lane threw.
  void finish();
  // The same, carried steps included.
  void settle();
  // The compute lane failed: the lane stops before its next step.
  void abandon();
  // The step of this lane that the compute lane waits for; nowhere: it does not wait. Any thread.
  StepIndex waited_for() const;

 private:
  void loop();
  void run(std::unique_lock<std::mutex>& lock);
  bool start_ready(std::unique_lock<std::mutex>& lock);
  void move_active(std::unique_lock<std::mutex>& lock);
  void tell_end(std::unique_lock<std::mutex>& lock);
  bool ready(StepIndex step) const;
  bool all_ended() const;  // but for carried steps
  bool finished() const;   // and what comes after them
  void wait_until(std::unique_lock<std::mutex>& lock, const std::function<bool()>& holds);

  const Steps steps_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  IndexedVector<StepIndex, bool> done_;
  // Steps started and not yet ended, those needed soonest first; with carried ones of the iteration before.
  std::vector<StepIndex> active_;
  IndexedVector<StepIndex, int64_t> due_;  // when the last one started is needed, counted over iterations
  int64_t iteration_ = 0;
  size_t next_ = 0, end_ = 0;  // in steps_.order
  bool running_ = false, abandoned_ = false, quit_ = false;
  bool end_is_told_ = true;     // Steps::ended was called
  bool compute_waits_ = false;  // then polling is worth a core
  StepIndex starting_{};        // the step that is being started
  std::exception_ptr failure_;  // until it is thrown to the compute lane
  std::thread thread_;
};

}  // namespace cortado
