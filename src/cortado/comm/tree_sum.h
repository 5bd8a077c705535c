#pragma once

#include <memory>
#include <span>

#include "cortado/comm/communicator.h"

namespace cortado {

// values = sum over the group's values, in place, in a fixed tree over its members in their order
// (base/sum_tree.h). Chunks go to the members that sum them, and back: the bytes of an allreduce over a ring.
// It takes the tags `tag` and `tag + 1` of exchanges. The communicator must outlive it.
std::unique_ptr<Transmission> make_tree_sum(Communicator& communicator, std::span<const int> group,
                                            ElementPointer values, int64_t count, int tag);

}  // namespace cortado
