#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/device/queue.h"
#include "cortado/exec/box_copy.h"
#include "cortado/program/movement.h"

namespace cortado {

// Who carries the messages of an exchange to some peers, or its collective.
struct Carrier {
  Communicator* communicator = nullptr;
  // The memory that travels in place of the exchange's own, at an address of it; null: its own.
  std::function<std::byte*(std::byte*)> in_place_of;
  std::function<bool(int peer)> takes;  // null: all; a peer is of the first carrier that takes it
  bool by_links = false;                // its transmissions are work of a queue (comm/links.h)
};

// A movement bound to memory. It packs what is sent, moves it by messages or a collective, and copies or adds
// what arrives. It is a state machine like the transmission inside it.
class BoundExchange {
 public:
  struct Run {
    std::byte* memory = nullptr;
    Bytes size;
  };
  // `from`, `to`: this rank's parts (null where it has none, or where `to` is `from` itself and nothing has
  // to be done there); `staging`: movement.packed() elements of movement.type(). `queue`: of the device that
  // has them all, which packs, copies and adds; null: the host does. A device adds in no tree.
  BoundExchange(const Movement& movement, std::byte* from, std::byte* to, std::byte* staging,
                std::vector<Carrier> carriers, int rank, int tag, device::Queue* queue = nullptr);

  bool uses_links() const { return std::ranges::find(by_links_, true) != by_links_.end(); }
  bool by_device() const { return queue_ != nullptr; }
  // Where the host does all of it.
  void start();
  bool test();

  // Its parts, in their order. Only send() and arrived() speak to others: send() by links or by the others.
  void pack();
  void send(bool by_links);
  void keep_own();  // what this rank has already
  bool arrived();
  void unpack();

  // Memory of the exchange in whose place other memory travels: sent, to be copied there after pack(); and
  // received, to be copied back before unpack().
  const std::vector<Run>& sent_elsewhere() const { return sent_elsewhere_; }
  const std::vector<Run>& received_elsewhere() const { return received_elsewhere_; }

  void give_way(bool gives_way) {
    for (auto& transmission : transmissions_) transmission->give_way(gives_way);
  }

 private:
  const Carrier& carrier_of(int peer) const;
  void* travels(const Carrier& carrier, std::byte* memory, Bytes size, std::vector<Run>& elsewhere);
  void bind_messages(std::byte* staging, int tag);
  void bind_collective(std::byte* staging);
  bool is_collective() const { return !movement_.group.empty(); }
  void copy(const TensorPart& from, const TensorPart& to, const Box& box) const;
  void add(const TensorPart& from, const TensorPart& to, const Box& box) const;
  void arrive_in_tree();

  Movement movement_;
  std::vector<Carrier> carriers_;
  int rank_;
  device::Queue* queue_;
  TensorPart from_, to_;
  std::vector<TensorPart> sends_, receives_;  // packed, of the type that travels
  std::vector<Run> sent_elsewhere_, received_elsewhere_;
  // None when this rank talks to nobody.
  std::vector<std::unique_ptr<Transmission>> transmissions_;
  std::vector<bool> by_links_;  // of transmissions_
};

}  // namespace cortado
