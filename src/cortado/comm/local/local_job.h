#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "cortado/comm/communicator.h"

namespace cortado {

class Hub;

// A job whose ranks are threads of this process. Sums are taken in the order of the group's ranks. A rank
// that throws makes every other rank's transmissions and blocking calls throw PeerError, and so does a peer
// that does not come within `patience`.
class LocalJob {
 public:
  explicit LocalJob(int ranks, std::chrono::milliseconds patience = std::chrono::seconds(60));

  // A rank's communicator, to be used by one thread at a time; one for each rank, before any run().
  std::unique_ptr<Communicator> communicator(int rank);
  // Runs `body` once a rank, each on a thread of its own; then rethrows what the first to fail threw.
  void run(const std::function<void(Communicator&)>& body);

 private:
  std::shared_ptr<Hub> hub_;
};

}  // namespace cortado
