#pragma once

#include <span>

#include "cortado/plan/plan_graph.h"

namespace cortado::plan {

// What a device holds. Every layer is counted as on the device that has most of it, so that a sum over layers
// is at least what any device holds. What kernels keep beside tensors (masks, workspaces) is not counted.

// What groups hold (priced.h) by vertex, and by edge the copies of tensors that move beyond these: bytes in
// place of seconds. The sum over an assignment is what it holds between forward and backward.
CostGraph held_graph(const PlanGraph& graph);

// The most that is held at a time in an iteration under an assignment: what the groups hold that have gone
// forward and not yet backward, copies of inputs that move, gradients of tensors on the way back, and
// messages as they are packed and unpacked. At least the sums of held_bytes and of held_graph.
Bytes peak_bytes(const PlanGraph& graph, std::span<const int> assignment);

}  // namespace cortado::plan
