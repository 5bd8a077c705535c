#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cortado/base/element_type.h"
#include "cortado/comm/elements.h"

namespace cortado {

// A communication bound to its memory, run once an iteration as a state machine that a progress engine steps:
// start(), then test() until it is complete. All ranks start their transmissions in the same order; several
// may be under way at a time. A failed peer: start() or test() throws PeerError.
class Transmission {
 public:
  virtual ~Transmission() = default;
  virtual void start() = 0;  // what is sent is ready, what is received may be overwritten
  virtual bool test() = 0;   // moves it on; true once complete, until the next start()
  // true: something else under way is needed sooner, so take only what that leaves of the link. Ranks may
  // differ in what they need soonest; all that is under way still ends.
  virtual void give_way(bool) {}
};

// Elements that go to or come from one rank. Several parts for one peer arrive in their order in the list.
struct MessagePart {
  int peer = 0;
  void* memory = nullptr;
  int64_t count = 0;
  ElementType type = ElementType::f32;
};

// Bytes that a rank has moved since it was made, as this library counts them (payload, without headers).
struct Traffic {
  int64_t sent = 0, received = 0;
};

// The ranks of a job. Transmissions are made once, collectively where they are collectives: all members of a
// group make the same collectives in the same order. Groups are ascending ranks and contain the caller.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Point-to-point: parts sent here match parts received there of the same tag (0 <= tag < 30000).
  virtual std::unique_ptr<Transmission> exchange(std::vector<MessagePart> sends,
                                                 std::vector<MessagePart> receives, int tag) = 0;
  // values = sum over the group's values, in place; the same bits on every member and in every run. The type
  // is one that ranks sum (ensure_summed).
  virtual std::unique_ptr<Transmission> allreduce(std::span<const int> group, ElementPointer values,
                                                  int64_t count) = 0;
  // Chunks lie one after the other in `values`, counts[i] elements for member i of the group. Reduce-scatter
  // leaves the sum of chunk i at member i (elsewhere undefined), of a type that ranks sum; allgather spreads
  // chunk i of member i to all.
  virtual std::unique_ptr<Transmission> reduce_scatter(std::span<const int> group, ElementPointer values,
                                                       std::vector<int64_t> counts) = 0;
  virtual std::unique_ptr<Transmission> allgather(std::span<const int> group, ElementPointer values,
                                                  std::vector<int64_t> counts) = 0;

  // Outside iterations; these block. All ranks call them.
  virtual void barrier() = 0;
  // Every rank's bytes, at every rank, by rank.
  virtual std::vector<std::vector<std::byte>> all_to_all_bytes(std::span<const std::byte> mine) = 0;
  // Point-to-point between two ranks, for gathering large things piece by piece.
  virtual void send(int peer, std::span<const float> values) = 0;
  virtual void receive(int peer, std::span<float> values) = 0;
  // The sum over all ranks, at every rank.
  virtual double sum(double mine) = 0;

  // Whether what is sent and received may lie in the memory of a GPU: not what is summed.
  virtual bool reads_device_memory() const { return false; }

  virtual Traffic traffic() const = 0;
  // Adds bytes that another communicator moved for this one's job. Of any thread.
  virtual void count(Traffic more) = 0;
};

// The only rank of its job: every transmission is empty, every sum its own.
std::unique_ptr<Communicator> make_single_communicator();

}  // namespace cortado
