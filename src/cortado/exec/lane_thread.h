#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cortado {

// The communication lane: a thread that runs its steps in order, once per iteration, while the compute lane
// runs on the caller's thread. Steps of either lane wait for steps of the other here.
class LaneThread {
 public:
  // `steps`: indices of this lane's steps, in order; `waits[s]`: what step s waits for; `run(s)` does it.
  LaneThread(std::vector<int> steps, std::vector<std::vector<int>> waits, std::function<void(int)> run);
  ~LaneThread();

  void start_iteration();
  // Waits until all of step `step`'s waits are done. Rethrows what the lane threw. Called by the compute
  // lane.
  void wait_for(int step);
  // Marks a step of the compute lane as done.
  void done(int step);
  // Waits until the lane has run all its steps of this iteration; rethrows.
  void finish_iteration();
  // The compute lane failed: the lane stops before its next step.
  void abandon_iteration();

 private:
  void loop();
  bool ready(int step) const;

  const std::vector<int> steps_;
  const std::vector<std::vector<int>> waits_;
  const std::function<void(int)> run_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> done_;
  bool running_ = false, abandoned_ = false, quit_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace cortado
