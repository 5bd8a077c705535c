#pragma once

#include "cortado/program/lower.h"

namespace cortado {

// The passes of lower(), each in its own file.

// Groups nodes into chains that one kernel runs, places one Work per chain, asks the oracle. (fuse.cpp)
void place_works(Program& program, const Network& network, const TaskOracle& oracle, bool fuse);

// Gives every tensor a buffer, in place where no one needs the old value, and makes the forward steps.
// (forward.cpp)
void place_forward(Program& program, const Network& network);

// Makes the backward steps in reverse order, the sums where a tensor has several consumers, and the updates.
// (backward.cpp)
void place_backward(Program& program, const Network& network);

// Adds the waits between lanes. (waits.cpp)
void add_waits(Program& program);

// Computes the life of every buffer and lays them out in one arena. (buffers.cpp)
void plan_buffers(Program& program, const Network& network, bool keep_tensors);

}  // namespace cortado
