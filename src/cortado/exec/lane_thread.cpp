#include "cortado/exec/lane_thread.h"

#include <algorithm>

namespace cortado {

LaneThread::LaneThread(std::vector<int> steps, std::vector<std::vector<int>> waits,
                       std::function<void(int)> run)
    : steps_(std::move(steps)),
      waits_(std::move(waits)),
      run_(std::move(run)),
      done_(waits_.size(), false),
      thread_([this] { loop(); }) {}

LaneThread::~LaneThread() {
  {
    std::lock_guard lock(mutex_);
    quit_ = abandoned_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool LaneThread::ready(int step) const {
  return std::ranges::all_of(waits_[step], [&](int other) { return done_[other]; });
}

void LaneThread::start_iteration() {
  {
    std::lock_guard lock(mutex_);
    std::fill(done_.begin(), done_.end(), false);
    failure_ = nullptr;
    abandoned_ = false;
    running_ = true;
  }
  changed_.notify_all();
}

void LaneThread::wait_for(int step) {
  if (waits_[step].empty()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ready(step) || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

void LaneThread::done(int step) {
  {
    std::lock_guard lock(mutex_);
    done_[step] = true;
  }
  changed_.notify_all();
}

void LaneThread::finish_iteration() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !running_; });
  if (failure_) std::rethrow_exception(failure_);
}

void LaneThread::abandon_iteration() {
  std::unique_lock lock(mutex_);
  abandoned_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !running_; });
}

void LaneThread::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return running_ || quit_; });
    if (quit_) return;
    for (int step : steps_) {
      changed_.wait(lock, [&] { return ready(step) || abandoned_; });
      if (abandoned_) break;
      lock.unlock();
      std::exception_ptr failure;
      try {
        run_(step);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      if (failure) {
        failure_ = failure;
        break;
      }
      done_[step] = true;
      changed_.notify_all();
    }
    running_ = false;
    changed_.notify_all();
  }
}

}  // namespace cortado
