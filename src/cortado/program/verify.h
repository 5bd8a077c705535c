#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "cortado/program/program.h"

namespace cortado {

// Throws InternalError naming the first law that does not hold: every buffer read was written before, buffers
// alive at one time do not overlap, waits point backward, steps of different lanes that share memory wait for
// one another, every parameter that wants a gradient is updated exactly once, after its last use or (late)
// before its first.
void verify(const Program& program, const Network& network);

// Checks the programs of all ranks together: every send has its receive of the same box, and all members of a
// group meet in the same order.
void verify_job(std::span<const Program> programs);

// What a rank does together with each of its groups, in order. It is equal at every member of the group.
using Meetings = std::map<std::vector<int>, std::vector<std::string>>;
Meetings meetings_of(const Program& program);

}  // namespace cortado
