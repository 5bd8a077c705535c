#include "cortado/exec/lane_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "cortado/base/denormals.h"

namespace cortado {
namespace {

// The pause between two looks at transmissions while the compute lane has work: long enough to leave it the
// core, short against a message.
constexpr std::chrono::microseconds pause{200};

}  // namespace

LaneThread::LaneThread(Steps steps)
    : steps_(std::move(steps)),
      done_(steps_.waits.size(), false),
      due_(steps_.waits.size(), 0),
      thread_([this] { loop(); }) {}

LaneThread::~LaneThread() {
  {
    std::lock_guard lock(mutex_);
    quit_ = abandoned_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool LaneThread::ready(StepIndex step) const {
  auto under_way = [&](StepIndex other) { return std::ranges::find(active_, other) != active_.end(); };
  return std::ranges::all_of(steps_.waits[step], [&](StepIndex other) { return done_[other]; }) &&
         std::ranges::none_of(steps_.waits_before[step], under_way) && !under_way(step);
}

bool LaneThread::all_ended() const {
  return next_ == end_ && std::ranges::all_of(active_, [&](StepIndex step) { return steps_.carried[step]; });
}

bool LaneThread::finished() const { return !running_ || (all_ended() && end_is_told_); }

void LaneThread::start() {
  {
    std::lock_guard lock(mutex_);
    std::fill(done_.begin(), done_.end(), false);
    ++iteration_;
    next_ = 0;
    end_ = steps_.order.size();
    abandoned_ = false;
    end_is_told_ = steps_.ended == nullptr;
    running_ = true;
  }
  changed_.notify_all();
}

// Polling is worth a core meanwhile. Rethrows what the lane threw.
void LaneThread::wait_until(std::unique_lock<std::mutex>& lock, const std::function<bool()>& holds) {
  if (!holds() && !failure_) {
    compute_waits_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return holds() || failure_; });
    compute_waits_ = false;
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void LaneThread::wait_for(StepIndex step) {
  if (steps_.waits[step].empty() && steps_.waits_before[step].empty()) return;
  std::unique_lock lock(mutex_);
  wait_until(lock, [&] { return ready(step); });
}

// Wakes the lane only where it finds something to do: most steps are nobody's.
void LaneThread::done(StepIndex step) {
  bool wake;
  {
    std::lock_guard lock(mutex_);
    done_[step] = true;
    wake = !active_.empty() || (next_ < end_ && ready(steps_.order[next_]));
  }
  if (wake) changed_.notify_all();
}

void LaneThread::leave_rest() {
  {
    std::lock_guard lock(mutex_);
    end_ = next_;
  }
  changed_.notify_all();
}

void LaneThread::finish() {
  std::unique_lock lock(mutex_);
  wait_until(lock, [&] { return finished(); });
}

void LaneThread::settle() {
  std::unique_lock lock(mutex_);
  wait_until(lock, [&] { return !running_; });
}

void LaneThread::abandon() {
  std::unique_lock lock(mutex_);
  abandoned_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !running_; });
}

// Returns the step that is being started, else the one under way that is needed soonest, else the next in
// order.
StepIndex LaneThread::waited_for() const {
  std::lock_guard lock(mutex_);
  if (!compute_waits_) return {};
  if (starting_) return starting_;
  if (!active_.empty()) return active_.front();
  return next_ < steps_.order.size() ? steps_.order[next_] : StepIndex();
}

void LaneThread::loop() {
  flush_denormals();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return running_ || quit_; });
    if (quit_) return;
    try {
      run(lock);
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      failure_ = std::current_exception();
    }
    active_.clear();
    starting_ = {};
    running_ = false;
    changed_.notify_all();
  }
}

void LaneThread::run(std::unique_lock<std::mutex>& lock) {
  while (!abandoned_ && (next_ < end_ || !active_.empty() || !end_is_told_)) {
    if (start_ready(lock)) continue;
    if (!end_is_told_ && all_ended()) {
      tell_end(lock);
      continue;
    }
    if (active_.empty()) {
      changed_.wait(lock, [&] { return abandoned_ || next_ == end_ || ready(steps_.order[next_]); });
      continue;
    }
    const size_t before = active_.size();
    move_active(lock);
    if (active_.size() < before || abandoned_) continue;
    if (compute_waits_) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    } else {
      changed_.wait_for(lock, pause);
    }
  }
}

void LaneThread::tell_end(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  steps_.ended();
  lock.lock();
  end_is_told_ = true;
  changed_.notify_all();
}

// Starts the next step if it may start. The step is in `active_` until it has ended.
bool LaneThread::start_ready(std::unique_lock<std::mutex>& lock) {
  if (next_ >= end_ || !ready(steps_.order[next_])) return false;
  const StepIndex step = steps_.order[next_++];
  due_[step] = iteration_ * static_cast<int64_t>(done_.size()) + steps_.needed[step];
  active_.insert(
      std::ranges::upper_bound(active_, due_[step], {}, [&](StepIndex other) { return due_[other]; }), step);
  starting_ = step;
  lock.unlock();
  steps_.start(step);
  lock.lock();
  starting_ = {};
  move_active(lock);
  if (finished()) changed_.notify_all();
  return true;
}

void LaneThread::move_active(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  std::vector<StepIndex> ended;
  for (StepIndex step : active_) {
    if (steps_.finished(step, step == active_.front())) ended.push_back(step);
  }
  lock.lock();
  if (ended.empty()) return;
  for (StepIndex step : ended) {
    done_[step] = true;
    std::erase(active_, step);
  }
  changed_.notify_all();
}

}  // namespace cortado
