#pragma once

#include <mutex>
#include <utility>

#include "cortado/exec/bound_exchange.h"
#include "cortado/exec/executor.h"

namespace cortado {

struct Executor::Bound {
  Kernel* kernel = nullptr;
  Arguments arguments;
};

struct Executor::BoundMessage {
  std::unique_ptr<BoundExchange> exchange;
  std::unique_ptr<Transmission> transmission;
};

// Written by the communication lane, also between iterations, where steps are carried.
struct Executor::MessageLog {
  using Time = std::chrono::steady_clock::time_point;
  explicit MessageLog(size_t steps) : begun(steps), last(steps) {}
  IndexedVector<StepIndex, Time> begun;  // of the communication lane alone
  std::mutex mutex;
  IndexedVector<StepIndex, std::pair<Time, Time>> last;  // when its last message began and arrived
};

}  // namespace cortado
