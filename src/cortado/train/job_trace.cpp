#include "cortado/train/job_trace.h"

namespace cortado {

std::vector<TraceSlice> slices_of_job(const Executor& executor, const Timeline& mine, Communicator& job) {
  const std::string own = slices_text(trace_slices(mine, executor.program(), executor.network()));
  std::vector<TraceSlice> slices;
  for (const auto& bytes : job.all_to_all_bytes(std::as_bytes(std::span(own)))) {
    if (job.rank() > 0) continue;
    const auto theirs = parse_slices({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    slices.insert(slices.end(), theirs.begin(), theirs.end());
  }
  return slices;
}

}  // namespace cortado
