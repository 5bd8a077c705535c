#pragma once

#include <utility>
#include <vector>

#include "cortado/comm/communicator.h"

namespace cortado::testing {

// Does as another communicator does, but for what a test overrides.
class ForwardingCommunicator : public Communicator {
 public:
  explicit ForwardingCommunicator(Communicator& job) : job_(job) {}

  std::vector<std::vector<std::byte>> all_to_all_bytes(std::span<const std::byte> mine) override {
    return job_.all_to_all_bytes(mine);
  }
  int rank() const override { return job_.rank(); }
  int size() const override { return job_.size(); }
  std::unique_ptr<Transmission> exchange(std::vector<MessagePart> sends, std::vector<MessagePart> receives,
                                         int tag) override {
    return job_.exchange(std::move(sends), std::move(receives), tag);
  }
  std::unique_ptr<Transmission> allreduce(std::span<const int> group, ElementPointer values,
                                          int64_t count) override {
    return job_.allreduce(group, values, count);
  }
  std::unique_ptr<Transmission> reduce_scatter(std::span<const int> group, ElementPointer values,
                                               std::vector<int64_t> counts) override {
    return job_.reduce_scatter(group, values, std::move(counts));
  }
  std::unique_ptr<Transmission> allgather(std::span<const int> group, ElementPointer values,
                                          std::vector<int64_t> counts) override {
    return job_.allgather(group, values, std::move(counts));
  }
  void barrier() override { job_.barrier(); }
  void send(int peer, std::span<const float> values) override { job_.send(peer, values); }
  void receive(int peer, std::span<float> values) override { job_.receive(peer, values); }
  double sum(double mine) override { return job_.sum(mine); }
  Traffic traffic() const override { return job_.traffic(); }
  void count(Traffic more) override { job_.count(more); }

 private:
  Communicator& job_;
};

}  // namespace cortado::testing
