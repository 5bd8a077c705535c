#pragma once

#include <string>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/exec/parameters.h"
#include "cortado/program/program.h"

namespace cortado {

// How ranks check that they have compiled the same. All ranks call each of these, in the same order. A check
// throws a UserError that names this rank and the one that differs.

// Every rank's text, by rank, at every rank.
std::vector<std::string> texts_of_all(Communicator& communicator, const std::string& mine);

// Gradients are summed element by element as they lie, so all replicas of a slice must have one memory order.
void check_memory_orders(const Network& network, const Program& program, const ParameterStore& parameters,
                         const ParameterEntries& entries, Communicator& communicator);

// Replicas that each compute the whole gradient must round the same way, or their weights drift apart.
void check_replicas(const Placement& placement, Communicator& communicator);

// All ranks make their groups in one order, since making one may wait for its members. What the members of a
// group do together must be the same, in the same order, at each of them.
void meet_groups(const Program& program, Communicator& communicator);

}  // namespace cortado
