#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "cortado/base/units.h"

namespace cortado::device {

// A place in a queue's order. It stands for where it was recorded last; before that it is reached already.
// Record it again only after everybody who waits for it has gone on.
class Event {
 public:
  virtual ~Event() = default;
  virtual void wait() = 0;
  virtual bool reached() = 0;
  // By the device's clock, from an earlier event; both are timed (DeviceRuntime::make_event()) and reached.
  virtual Seconds since(const Event& earlier) const = 0;
};

// Work of a queue that was captured, to be done again and again (Queue::replay()).
class Graph {
 public:
  virtual ~Graph() = default;
};

// Work on a device, done in order and, unless the device is the host, later than it is given. One thread at a
// time gives it work. Host memory that a copy names stays as it is, and device memory alive, until it is
// done. After a launched function throws, the queue does no more copies and functions; finish() throws it on,
// once.
class Queue {
 public:
  virtual ~Queue() = default;

  virtual void copy_in(std::byte* device, const std::byte* host, Bytes size) = 0;
  virtual void copy_out(std::byte* host, const std::byte* device, Bytes size) = 0;
  virtual void fill(float* device, float value, int64_t count) = 0;
  virtual void record(Event& event) = 0;
  virtual void wait(Event& event) = 0;  // what is given from now on comes after the event, as recorded last
  virtual void finish() = 0;            // the caller waits until all is done
  // The stream of a GPU (cudaStream_t) on which launched functions start their work; null: there is none,
  // they do it themselves.
  virtual void* stream() const { return nullptr; }

  // Functions launched and fills given from begin_capture() to end_capture(), by one thread, are not done but
  // kept: what they took along by value stays as it was then. replay() gives all of them at once. The graph
  // must outlive its last replay. Copies, events and finish() are no part of one. Only where
  // DeviceRuntime::captures().
  virtual void begin_capture();
  virtual std::unique_ptr<Graph> end_capture();
  virtual void replay(Graph& graph);

  // Runs `work`, which may touch device memory by addresses of DeviceRuntime::for_kernels() and all else that
  // it refers to. Where work runs at once it is not copied.
  template <typename Work>
  void launch(Work&& work) {
    if (at_once_)
      work();
    else
      launch_later(std::forward<Work>(work));
  }

 protected:
  explicit Queue(bool at_once) : at_once_(at_once) {}
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  virtual void launch_later(std::function<void()> work) = 0;

 private:
  const bool at_once_;
};

}  // namespace cortado::device
