#include "cortado/app/job_trace.h"

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

std::vector<TraceSlice> slices_of_job(const SimulatedJob& job, const Network& network) {
  std::vector<TraceSlice> slices;
  auto next = job.simulation.timeline.begin();
  for (const Program& program : job.programs) {
    const auto end = next + std::ssize(program.steps);
    const auto own = trace_slices({next, end}, program, network, job.simulation.iteration);
    slices.insert(slices.end(), own.begin(), own.end());
    next = end;
  }
  return slices;
}

}  // namespace cortado
