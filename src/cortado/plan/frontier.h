#pragma once

#include <vector>

#include "cortado/plan/frontier_point.h"
#include "cortado/plan/search.h"

namespace cortado::plan {

// Seconds against bytes. The bytes of an assignment are the sum of its candidates'.

// Corners of the lower convex hull of all assignments' (bytes, seconds), from the fewest bytes to the least
// seconds: each is the optimum of seconds + m * bytes for some multiplier m >= 0. Exact; one search for each
// corner and one for each side. Assignments above the hull that no other one beats in both are not listed;
// search_within finds them. Seconds are rounded as search rounds. Throws as search does.
std::vector<FrontierPoint> frontier(const CostGraph& graph, const SearchOptions& options = {});

}  // namespace cortado::plan
