#pragma once

#include <functional>

#include "cortado/plan/search.h"

namespace cortado::plan {

// Calls `see` with every assignment of a graph and its seconds, rounded as search rounds, the last vertex's
// candidate running fastest. Throws UserError when there are more than `most`.
void for_each_assignment(const CostGraph& graph, int64_t most,
                         const std::function<void(const std::vector<int>&, double)>& see);

// The optimum by trying everything that may be cheaper than the best known: what search is compared with. The
// first of several. Throws UserError when it would try more than `most` partial assignments.
Optimum exhaustive_search(const CostGraph& graph, int64_t most = 20'000'000);

}  // namespace cortado::plan
