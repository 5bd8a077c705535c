#include "cortado/train/job_trace.h"

#include "cortado/base/file.h"
#include "cortado/report/trace.h"
#include "cortado/train/gather.h"

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

void write_job_trace(const std::string& path, const Executor& executor, const Timeline& mine,
                     Communicator& job) {
  const std::vector<TraceSlice> slices = slices_of_job(executor, mine, job);
  at_first_rank(&job, [&] {
    write_file_atomically(path, trace_json(slices));
    return std::string();
  });
}

}  // namespace cortado
