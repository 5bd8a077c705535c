#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "cortado/program/program.h"

namespace cortado {

// Throws InternalError that names the first law that does not hold (docs/explanation/program.md, Checks).
void verify(const Program& program, const Network& network);

// Checks the programs of all ranks together: every send has its receive of the same box, and all members of a
// group meet in the same order.
void verify_job(std::span<const Program> programs);

// What a rank does together with each of its groups, in order. It is equal at every member of the group.
using Meetings = std::map<std::vector<int>, std::vector<std::string>>;
Meetings meetings_of(const Program& program);

}  // namespace cortado
