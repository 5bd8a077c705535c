#include "cortado/report/run_report.h"

#include <algorithm>
#include <utility>

namespace cortado {

RunTotals totals_of(std::span<const TraceSlice> slices) {
  RunTotals totals;
  for (const TraceSlice& slice : slices) {
    if (!slice.carried) totals.end = std::max(totals.end, slice.end);
    if (slice.lane == Lane::compute) totals.compute += slice.length();
    if (slice.message()) totals.communication += slice.length();
    (slice.loads() ? totals.data_wait : totals.exposed) += slice.exposed_length();
  }
  return totals;
}

RunReport run_report_of(const TimeReport& times, const Network& network, std::string about,
                        std::vector<TraceSlice> slices) {
  RunReport report;
  report.net = network.name();
  report.about = std::move(about);
  report.ranks = times.ranks;
  report.images = times.images;
  report.bytes = times.bytes;
  report.step = times.step;
  report.totals = {.end = times.step,
                   .compute = times.compute(),
                   .communication = times.messages,
                   .exposed = times.exposed,
                   .data_wait = times.data_wait};
  report.slices = std::move(slices);
  return report;
}

}  // namespace cortado
