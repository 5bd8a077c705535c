#include "cortado/device/emulated/late_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cortado/base/compute_threads.h"
#include "cortado/base/denormals.h"
#include "cortado/base/error.h"

namespace cortado::device::emulated {

void LateEvent::wait() {
  if (!queue_) return;
  std::unique_lock lock(queue_->mutex_);
  queue_->ask_for(items_);
  queue_->changed_.wait(lock, [&] { return queue_->done_ >= items_; });
}

bool LateEvent::reached() {
  if (!queue_) return true;
  std::unique_lock lock(queue_->mutex_);
  queue_->ask_for(items_);
  return queue_->done_ >= items_;
}

Seconds LateEvent::since(const Event& earlier) const {
  return {
      std::chrono::duration<double>(recorded_ - static_cast<const LateEvent&>(earlier).recorded_).count()};
}

LateQueue::LateQueue(const DeviceRuntime& device)
    : Queue(false), device_(device), thread_([this] { loop(); }) {}

// What nobody has waited for is left out.
LateQueue::~LateQueue() {
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LateQueue::copy_in(std::byte* device, const std::byte* host, Bytes size) {
  require_no_capture();
  std::byte* to = device_.for_kernels(device);
  if (size.count > 0) add({[=] { std::memcpy(to, host, static_cast<size_t>(size.count)); }});
}

void LateQueue::copy_out(std::byte* host, const std::byte* device, Bytes size) {
  require_no_capture();
  const std::byte* from = device_.for_kernels(device);
  if (size.count > 0) add({[=] { std::memcpy(host, from, static_cast<size_t>(size.count)); }});
}

void LateQueue::fill(float* device, float value, int64_t count) {
  float* to = device_.for_kernels(device);
  add({[=] { std::fill_n(to, count, value); }});
}

void LateQueue::record(Event& event) {
  require_no_capture();
  auto& late = static_cast<LateEvent&>(event);
  if (late.timed_) add({[&late] { late.recorded_ = std::chrono::steady_clock::now(); }, true});
  std::lock_guard lock(mutex_);
  late.queue_ = this;
  late.items_ = given_;
}

void LateQueue::wait(Event& event) {
  require_no_capture();
  const LateEvent as_recorded = static_cast<LateEvent&>(event);
  if (as_recorded.queue_ == nullptr || as_recorded.queue_ == this) return;
  add({[recorded = as_recorded]() mutable { recorded.wait(); }, true});
}

void LateQueue::finish() {
  require_no_capture();
  std::unique_lock lock(mutex_);
  ask_for(given_);
  changed_.wait(lock, [&] { return done_ == given_; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void LateQueue::require_no_capture() const {
  ensure(!captured_, "only launched functions and fills are captured");
}

void LateQueue::begin_capture() {
  require_no_capture();
  captured_ = std::make_unique<LateGraph>();
}

std::unique_ptr<Graph> LateQueue::end_capture() {
  ensure(captured_ != nullptr, "a capture that began ends");
  return std::move(captured_);
}

void LateQueue::replay(Graph& graph) {
  require_no_capture();
  for (const Item& item : static_cast<LateGraph&>(graph).items) add(item);
}

// Launches the work with as many compute threads as the calling thread has.
void LateQueue::launch_later(std::function<void()> work) {
  add({[work = std::move(work), threads = compute_threads()] {
    set_compute_threads(threads);
    work();
  }});
}

void LateQueue::add(Item item) {
  if (captured_) {
    captured_->items.push_back(std::move(item));
    return;
  }
  std::lock_guard lock(mutex_);
  items_.push_back(std::move(item));
  ++given_;
}

void LateQueue::ask_for(int64_t items) {
  if (items <= asked_) return;
  asked_ = items;
  changed_.notify_all();
}

void LateQueue::loop() {
  flush_denormals();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return quit_ || done_ < asked_; });
    if (quit_) return;
    Item item = std::move(items_.front());
    items_.pop_front();
    const bool left_out = failure_ && !item.waits;
    lock.unlock();
    std::exception_ptr failure;
    try {
      if (!left_out) item.work();
    } catch (...) {
      failure = std::current_exception();
    }
    item = {};  // what it holds is let go before anybody hears that it is done
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace cortado::device::emulated
