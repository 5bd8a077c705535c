#include "cortado/measure/allreduce_probe.h"

#include <algorithm>
#include <numeric>

#include "cortado/device/memory.h"
#include "cortado/measure/probe_timing.h"

namespace cortado {

std::vector<CollectiveTime> measure_allreduce(Communicator& job, Seconds duration) {
  constexpr int64_t sizes[] = {1 << 8, 1 << 14, 1 << 18, 1 << 22};  // floats
  std::vector<int> groups;
  for (int members = 2; members < job.size(); members *= 2) groups.push_back(members);
  if (job.size() > 1) groups.push_back(job.size());
  const double share =
      duration.count / static_cast<double>(std::max<size_t>(1, groups.size() * std::size(sizes)));
  const device::Memory buffer({sizes[3] * probes::float_bytes});
  std::vector<CollectiveTime> times;
  for (int members : groups) {
    job.barrier();
    if (job.rank() >= members) continue;
    std::vector<int> group(static_cast<size_t>(members));
    std::iota(group.begin(), group.end(), 0);
    double once = 0;  // as rank 0 sees it, for all
    const auto broadcast = job.allreduce(group, &once, 1);
    int64_t before = 0;
    for (int64_t count : sizes) {
      const double expected =
          before == 0 ? 0 : once * static_cast<double>(count) / static_cast<double>(before);
      if (2 * expected > 4 * share + 1) break;
      const auto sum = job.allreduce(group, buffer.floats(), count);
      probes::finish(*sum);
      const double first = probes::seconds_of([&] { probes::finish(*sum); });
      once = job.rank() == 0 ? first : 0;
      probes::finish(*broadcast);
      const int rounds = probes::times_in(share, once, 2, 2000);
      once = probes::seconds_of([&] {
        for (int i = 0; i < rounds; ++i) probes::finish(*sum);
      });
      once = job.rank() == 0 ? once / rounds : 0;
      probes::finish(*broadcast);
      times.push_back({members, {count * probes::float_bytes}, {once}});
      before = count;
    }
  }
  job.barrier();
  return times;
}

}  // namespace cortado
