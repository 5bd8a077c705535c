#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cortado {

// The communication lane: a progress engine on a thread of its own (Aluminum's design). It starts its steps
// in order, each as soon as what it waits for has ended, and moves all that are under way, those that are
// needed soonest first, until they are complete; the compute lane runs on the caller's thread. Steps of
// either lane wait for steps of the other here.
class LaneThread {
 public:
  struct Steps {
    std::vector<int> order;  // this lane's steps
    // Per step of the program, as there: what it waits for, also of the iteration before, and whether it may
    // still be under way in the next one.
    std::vector<std::vector<int>> waits, waits_before;
    std::vector<bool> carried;
    std::vector<int> needed;         // per step of the program: Step::needed
    std::function<void(int)> start;  // begins a step
    // Moves a step that was started; true when it has ended. `first`: none under way is needed sooner.
    std::function<bool(int, bool first)> finished;
  };
  explicit LaneThread(Steps steps);
  ~LaneThread();

  // Runs the lane's steps of an iteration. Carried steps go on meanwhile.
  void start();
  // Waits until step `step` may begin. Rethrows what the lane threw. Called by the compute lane.
  void wait_for(int step);
  // Marks a step of the compute lane as done.
  void done(int step);
  // Leaves out the steps that have not begun.
  void leave_rest();
  // Waits until the lane has run all the steps it was started for, but for carried ones; rethrows.
  void finish();
  // The same with carried ones.
  void settle();
  // The compute lane failed: the lane stops before its next step.
  void abandon();
  // The step of this lane that the compute lane waits for; -1: it does not wait. Any thread.
  int waited_for() const;

 private:
  void loop();
  void run(std::unique_lock<std::mutex>& lock);
  bool start_ready(std::unique_lock<std::mutex>& lock);
  void move_active(std::unique_lock<std::mutex>& lock);
  bool ready(int step) const;
  bool finished() const;  // but for carried steps
  void wait_until(std::unique_lock<std::mutex>& lock, const std::function<bool()>& holds);

  const Steps steps_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> done_;
  // Started, not yet ended, those needed soonest first; of carried steps also those of the iteration before.
  std::vector<int> active_;
  std::vector<int64_t> due_;  // per step: when it is needed that was started last, counted over iterations
  int64_t iteration_ = 0;
  size_t next_ = 0, end_ = 0;  // in steps_.order
  bool running_ = false, abandoned_ = false, quit_ = false;
  bool compute_waits_ = false;  // so that polling is worth the core
  int starting_ = -1;           // the step that is being started
  std::exception_ptr failure_;  // until it is thrown to the compute lane
  std::thread thread_;
};

}  // namespace cortado
