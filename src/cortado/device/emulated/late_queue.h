#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cortado/device/runtime.h"

namespace cortado::device::emulated {

class LateQueue;

// The number of items of a queue that come before it.
class LateEvent : public Event {
 public:
  explicit LateEvent(bool timed) : timed_(timed) {}
  void wait() override;
  bool reached() override;
  Seconds since(const Event& earlier) const override;

 private:
  friend class LateQueue;
  const bool timed_;
  LateQueue* queue_ = nullptr;
  int64_t items_ = 0;
  std::chrono::steady_clock::time_point recorded_;  // written by the queue's thread
};

// A thread that does its items in order, each once somebody waits for it or for a later one.
class LateQueue : public Queue {
 public:
  explicit LateQueue(const DeviceRuntime& device);
  ~LateQueue() override;

  void copy_in(std::byte* device, const std::byte* host, Bytes size) override;
  void copy_out(std::byte* host, const std::byte* device, Bytes size) override;
  void fill(float* device, float value, int64_t count) override;
  void record(Event& event) override;
  void wait(Event& event) override;
  void finish() override;
  void begin_capture() override;
  std::unique_ptr<Graph> end_capture() override;
  void replay(Graph& graph) override;

 private:
  friend class LateEvent;
  struct Item {
    std::function<void()> work;
    bool waits = false;  // for another queue: done though an item before it failed
  };
  struct LateGraph : Graph {
    std::vector<Item> items;
  };
  void launch_later(std::function<void()> work) override;
  void add(Item item);
  void require_no_capture() const;
  void loop();
  void ask_for(int64_t items);  // under the mutex

  const DeviceRuntime& device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<LateGraph> captured_;  // null: nobody captures; of the thread that gives work
  std::deque<Item> items_;               // those not done
  int64_t given_ = 0, asked_ = 0, done_ = 0;
  bool quit_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace cortado::device::emulated
