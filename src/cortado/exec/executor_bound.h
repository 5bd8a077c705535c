#pragma once

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

}  // namespace cortado
