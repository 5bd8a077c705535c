#pragma once

#include <map>
#include <string>
#include <vector>

#include "cortado/report/markup.h"
#include "cortado/report/page.h"
#include "cortado/report/run_report.h"

namespace cortado {

// Slices by rank.
using RankSlices = std::map<int, std::vector<TraceSlice>>;
RankSlices slices_by_rank(const std::vector<TraceSlice>& slices);

// The parts of run_page(), each a section of HTML.
std::string lanes_part(const RunReport& report);      // the timeline of both lanes, rank by rank
std::string exposed_part(const RunReport& report);    // messages of each layer, and what was waited for
std::string predicted_part(const RunReport& report);  // beside measured; empty where nothing was predicted
std::string run_ranks_part(const RunReport& report);  // a table of the ranks

// "83.1", or "none" where there is no communication.
std::string overlap_text(const RunTotals& totals);

// Ranks of large jobs that are shown one by one.
inline constexpr size_t shown_ranks = 8;

}  // namespace cortado
