#pragma once

#include <memory>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/exec/box_copy.h"
#include "cortado/program/movement.h"

namespace cortado {

// A movement bound to memory. It packs what is sent, moves it by messages or a collective, and copies or adds
// what arrives. It is a state machine like the transmission inside it.
class BoundExchange {
 public:
  // `from`, `to`: this rank's parts (null where it has none, or where `to` is `from` itself and nothing has
  // to be done there); `staging`: movement.packed() elements of movement.type().
  BoundExchange(const Movement& movement, std::byte* from, std::byte* to, std::byte* staging,
                Communicator& communicator, int tag);

  void start();
  bool test();
  void give_way(bool gives_way) {
    if (transmission_) transmission_->give_way(gives_way);
  }

 private:
  void bind_messages(std::byte* staging, Communicator& communicator, int tag);
  void bind_collective(std::byte* staging, Communicator& communicator);
  void arrive();
  void arrive_in_tree();

  Movement movement_;
  int rank_;
  TensorPart from_, to_;
  std::vector<TensorPart> sends_, receives_;    // packed, of the type that travels
  std::unique_ptr<Transmission> transmission_;  // null when this rank talks to nobody
};

}  // namespace cortado
