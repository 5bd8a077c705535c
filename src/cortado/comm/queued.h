#pragma once

#include <exception>
#include <functional>
#include <memory>

#include "cortado/comm/communicator.h"
#include "cortado/device/runtime.h"

namespace cortado {

// A communicator whose transmissions are work of a device's queue. What blocks, and what is counted, is the
// job's.
class QueuedCommunicator : public Communicator {
 public:
  QueuedCommunicator(Communicator& job, device::DeviceRuntime& device, device::Queue& queue)
      : job_(job), device_(device), queue_(queue) {}

  int rank() const override { return job_.rank(); }
  int size() const override { return job_.size(); }
  void barrier() override { job_.barrier(); }
  std::vector<std::vector<std::byte>> all_to_all_bytes(std::span<const std::byte> mine) override {
    return job_.all_to_all_bytes(mine);
  }
  void send(int peer, std::span<const float> values) override { job_.send(peer, values); }
  void receive(int peer, std::span<float> values) override { job_.receive(peer, values); }
  double sum(double mine) override { return job_.sum(mine); }
  Traffic traffic() const override { return job_.traffic(); }
  void count(Traffic more) override { job_.count(more); }

 protected:
  // `work` is launched at each start. `check`: throws where a peer has failed meanwhile; may be empty.
  std::unique_ptr<Transmission> transmission(std::function<void()> work, std::function<void()> check = {}) {
    return std::make_unique<Queued>(queue_, device_.make_event(), std::move(work), std::move(check));
  }

  Communicator& job_;
  device::DeviceRuntime& device_;
  device::Queue& queue_;

 private:
  class Queued : public Transmission {
   public:
    Queued(device::Queue& queue, std::unique_ptr<device::Event> event, std::function<void()> work,
           std::function<void()> check)
        : queue_(queue), event_(std::move(event)), work_(std::move(work)), check_(std::move(check)) {}

    // The queue goes on after a failure, which test() throws.
    void start() override {
      queue_.launch([this] {
        try {
          work_();
        } catch (...) {
          failure_ = std::current_exception();
        }
      });
      queue_.record(*event_);
    }
    bool test() override {
      if (!event_->reached()) {
        if (check_) check_();
        return false;
      }
      if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
      return true;
    }

   private:
    device::Queue& queue_;
    std::unique_ptr<device::Event> event_;
    std::function<void()> work_, check_;
    std::exception_ptr failure_;  // written by the queue before the event is reached
  };
};

}  // namespace cortado
