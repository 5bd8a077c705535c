#pragma once

#include "cortado/program/program.h"

namespace cortado {

struct LowerOptions {
  bool keep_tensors = false;  // every activation and gradient lives to the end (tests, debugging)
  bool fuse = true;
  // Called after every pass with its name and the program so far (dumps).
  std::function<void(std::string_view pass, const Program&)> after_pass;
};

// Network to Program: the passes in order. `oracle` answers for each task that is placed.
Program lower(const Network& network, const TaskOracle& oracle, const LowerOptions& options = {});

// Throws InternalError naming the first law that does not hold: every buffer read was written before, buffers
// alive at one time do not overlap, waits point backward and to the other lane, every parameter that wants a
// gradient is updated exactly once and after its last use.
void verify(const Program& program, const Network& network);

}  // namespace cortado
