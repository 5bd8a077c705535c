#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <mpi.h>
#include <utility>
#include <vector>

#include "cortado/base/activity.h"
#include "cortado/comm/mpi/world.h"
#include "cortado/comm/ring.h"

namespace cortado {

// A RingSchedule as a state machine: up to `window` segments are under way in each direction, and what
// arrives is summed here. Each test() takes what is complete and posts what may follow; nothing waits. Sends
// are synchronous: else megabytes of them would lie in the system's buffers, ahead of what is urgent.
class MpiRing : public Transmission {
 public:
  static constexpr size_t window = 4;
  static constexpr size_t kept = 2;  // while it gives way: one segment arrives, one is on its way

  // `tag` tells apart the rings of one group that are under way together.
  MpiRing(std::shared_ptr<MpiWorld> world, const MpiGroup& group, int tag, ElementPointer values,
          std::span<const int64_t> counts, RingPhases phases, int64_t segment_bytes)
      : world_(std::move(world)),
        comm_(group.comm),
        next_((group.member + 1) % group.size),
        previous_((group.member + group.size - 1) % group.size),
        tag_(tag),
        values_(values),
        segment_(elements_in({segment_bytes}, values.type)),
        schedule_(ring_schedule(counts, group.member, phases, segment_)),
        volume_(ring_traffic(schedule_, values.type)) {
    if (schedule_.summed == 0) return;
    longest_ = std::ranges::max(schedule_.receives, {}, &RingMessage::count).count;
    const int64_t slots = static_cast<int64_t>(std::min(window, schedule_.summed));
    arrived_.resize(static_cast<size_t>(bytes_of(slots * longest_, values.type).count));
  }

  void start() override {
    sent_ = sending_ = received_ = receiving_ = 0;
    gives_way_ = false;
    world_->traffic().add(volume_);
    post();
  }

  bool test() override {
    take_receives();
    for (; sent_ < sending_ && complete(sends_[sent_ % window]); ++sent_) {
      under_way_ -= bytes_of_send(sent_);
      if (answered()) world_->under_way().arrived(begun_[sent_ % window]);
    }
    tell_world();
    post();
    return sent_ == schedule_.sends.size() && received_ == schedule_.receives.size();
  }

  void give_way(bool gives_way) override {
    if (gives_way && !gives_way_) world_->under_way().urgent_waits(false);
    gives_way_ = gives_way;
  }

 private:
  static bool complete(MPI_Request& request) {
    int flag = 0;
    check_mpi(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    return flag != 0;
  }

  int64_t bytes_of_send(size_t send) const {
    return bytes_of(schedule_.sends[send].count, values_.type).count;
  }
  ElementPointer slot(size_t receive) {
    return ElementPointer(arrived_.data(), values_.type) + static_cast<int64_t>(receive % window) * longest_;
  }

  void take_receives() {
    for (; received_ < receiving_ && complete(receives_[received_ % window]); ++received_) {
      count_progress();
      if (received_ >= schedule_.summed) continue;
      const RingMessage& message = schedule_.receives[received_];
      add_elements(values_ + message.offset, slot(received_).memory, message.count);
    }
  }

  bool answered() const { return sent_ > 0; }  // the neighbour has begun, too

  void tell_world() {
    const int64_t counts = answered() ? under_way_ : 0;
    world_->under_way().add(counts - std::exchange(counted_, counts));
  }

  // A segment of the allgather overwrites what the reduce-scatter sent; that must have left.
  bool may_receive() const {
    if (receiving_ == schedule_.receives.size() || receiving_ == received_ + window) return false;
    if (schedule_.summed == 0 || receiving_ < schedule_.summed) return true;
    return sent_ > receiving_ - schedule_.summed;
  }

  // Whether this ring's own state allows to send.
  bool can_send() const {
    const size_t under_way = sending_ - sent_;
    if (sending_ == schedule_.sends.size() || under_way >= (gives_way_ ? kept : window)) return false;
    return sending_ < schedule_.ready_sends || received_ > sending_ - schedule_.ready_sends;
  }

  // A ring with nothing under way sends at once if it is needed soonest, so that rings never wait for one
  // another. Any other ring does so only until its neighbour answers: from then on its bytes count.
  bool may_send() const {
    if (sending_ == sent_ && !(gives_way_ && answered())) return true;
    return gives_way_ ? world_->under_way().others_may_send() : world_->under_way().may_send();
  }

  void post() {
    for (; may_receive(); ++receiving_) {
      const RingMessage& message = schedule_.receives[receiving_];
      const ElementPointer to = receiving_ < schedule_.summed ? slot(receiving_) : values_ + message.offset;
      check_mpi(MPI_Irecv(to.memory, static_cast<int>(message.count), mpi_type(to.type), previous_, tag_,
                          comm_, &receives_[receiving_ % window]));
    }
    for (; can_send() && may_send(); ++sending_) {
      const RingMessage& message = schedule_.sends[sending_];
      const ElementPointer from = values_ + message.offset;
      check_mpi(MPI_Issend(from.memory, static_cast<int>(message.count), mpi_type(from.type), next_, tag_,
                           comm_, &sends_[sending_ % window]));
      begun_[sending_ % window] = UnderWay::Clock::now();
      under_way_ += bytes_of_send(sending_);
      tell_world();
    }
    if (!gives_way_) world_->under_way().urgent_waits(can_send());
  }

  std::shared_ptr<MpiWorld> world_;
  MPI_Comm comm_;
  int next_, previous_, tag_;
  ElementPointer values_;
  int64_t segment_, longest_ = 0;  // elements of a segment, and of the longest that comes
  RingSchedule schedule_;
  Traffic volume_;
  std::vector<std::byte> arrived_;  // segments to be summed
  std::array<MPI_Request, window> sends_{}, receives_{};
  std::array<UnderWay::Clock::time_point, window> begun_{};  // sends
  bool gives_way_ = false;
  size_t sent_ = 0, sending_ = 0;        // complete and posted sends
  size_t received_ = 0, receiving_ = 0;  // complete and posted receives
  int64_t under_way_ = 0, counted_ = 0;  // bytes sent that have not arrived, and those that the rank counts
};

}  // namespace cortado
