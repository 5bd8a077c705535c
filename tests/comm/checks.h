#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cortado/comm/communicator.h"

namespace cortado {

// What every communicator must do, whatever it is made of. Each check is run by all ranks of a job at once,
// for any number of ranks; it compares with values computed from the ranks' numbers and reports through
// GoogleTest.
struct CommunicatorCheck {
  std::string name;
  std::function<void(Communicator&)> run;
};
const std::vector<CommunicatorCheck>& communicator_checks();

// Starts it and tests until it is complete.
void complete(Transmission& transmission);

}  // namespace cortado
