#pragma once

#include <map>
#include <memory>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/comm/local/hub.h"
#include "cortado/comm/ring.h"
#include "cortado/comm/traffic_count.h"

namespace cortado {

// A rank of a LocalJob. Collectives count the bytes that a ring would move.
class LocalCommunicator : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<Hub> hub, int rank);

  int rank() const override { return rank_; }
  int size() const override { return hub_->ranks(); }
  std::unique_ptr<Transmission> exchange(std::vector<MessagePart> sends, std::vector<MessagePart> receives,
                                         int tag) override;
  std::unique_ptr<Transmission> allreduce(std::span<const int> group, ElementPointer values,
                                          int64_t count) override;
  std::unique_ptr<Transmission> reduce_scatter(std::span<const int> group, ElementPointer values,
                                               std::vector<int64_t> counts) override;
  std::unique_ptr<Transmission> allgather(std::span<const int> group, ElementPointer values,
                                          std::vector<int64_t> counts) override;
  void barrier() override;
  std::vector<std::vector<std::byte>> all_to_all_bytes(std::span<const std::byte> mine) override;
  void send(int peer, std::span<const float> values) override;
  void receive(int peer, std::span<float> values) override;
  double sum(double mine) override;
  Traffic traffic() const override { return {traffic_->sent, traffic_->received}; }
  void count(Traffic more) override { traffic_->add(more); }

 private:
  std::vector<SharedBytes> meet(std::vector<std::byte> mine);
  std::unique_ptr<Transmission> collective(std::span<const int> group, ElementPointer values,
                                           std::vector<int64_t> counts, RingPhases phases);

  std::shared_ptr<Hub> hub_;
  int rank_;
  std::shared_ptr<TrafficCount> traffic_;
  std::map<std::vector<int>, int64_t> made_;  // collectives of each group
  Hub::Key everyone_;
  int64_t meetings_ = 0;
};

}  // namespace cortado
