#pragma once

#include <atomic>

#include "cortado/comm/communicator.h"

namespace cortado {

// Bytes moved so far; transmissions of any thread add to it.
struct TrafficCount {
  std::atomic<int64_t> sent = 0, received = 0;
  void add(Traffic more) {
    sent += more.sent;
    received += more.received;
  }
};

}  // namespace cortado
