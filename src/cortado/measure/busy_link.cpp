#include "cortado/measure/busy_link.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>

#include "cortado/comm/values_of_ranks.h"
#include "cortado/device/memory.h"
#include "cortado/measure/link_probes.h"
#include "cortado/measure/probe_timing.h"

namespace cortado {
namespace {

// Small sums over the members, one after the other: of those that end while `large` is under way, or of all
// where there is none, the mean of what one takes.
class SmallSums {
 public:
  SmallSums(Communicator& job, std::span<const int> members)
      : values_({count * probes::float_bytes}), sum_(job.allreduce(members, values_.floats(), count)) {
    probes::finish(*sum_);
  }
  std::optional<double> mean(Transmission* large) {
    constexpr int times = 50;
    double all = 0;
    int counted = 0;
    bool over = false;
    if (large != nullptr) large->start();
    for (int i = 0; i < times; ++i) {
      const double one = probes::seconds_of([&] {
        sum_->start();
        while (!sum_->test()) over = over || moved(large);
      });
      over = over || moved(large);
      if (over) continue;
      all += one;
      ++counted;
    }
    while (large != nullptr && !over) over = moved(large);
    return counted > 0 ? std::optional(all / counted) : std::nullopt;
  }

 private:
  static constexpr int64_t count = 64;  // floats
  // Whether it is complete, after it was moved on as one that gives way.
  static bool moved(Transmission* large) {
    if (large == nullptr) return std::this_thread::yield(), false;
    large->give_way(true);
    return large->test();
  }
  const device::Memory values_;
  const std::unique_ptr<Transmission> sum_;
};

// Floats whose sum keeps that link busy for so long.
int64_t floats_for(Seconds duration, const Link& link) {
  const double floats = link.bandwidth.bytes_per_second * duration.count / 2 / probes::float_bytes;
  return static_cast<int64_t>(std::clamp(floats, 0x1p16, 0x1p24));
}

double wait_of(Communicator& job, const std::vector<int>& members, int64_t floats) {
  const device::Memory buffer({floats * probes::float_bytes});
  const auto large = job.allreduce(members, buffer.floats(), floats);
  SmallSums small(job, members);
  const double alone = *small.mean(nullptr);
  const double beside = small.mean(large.get()).value_or(alone);
  const double rounds = std::ceil(std::log2(static_cast<double>(members.size())));
  return std::max(0.0, beside - alone) / rounds;
}

}  // namespace

Seconds measure_busy_link(Communicator& job, std::span<const int> nodes, const std::vector<Link>& pairs,
                          Seconds duration) {
  const std::vector<int> firsts = first_ranks(nodes);
  if (firsts.size() < 2) return {};
  const bool takes_part = std::ranges::find(firsts, job.rank()) != firsts.end();
  const int64_t floats = floats_for(duration, slowest_of_ring(firsts, pairs, job.size()));
  job.barrier();
  const std::vector<double> waits = values_of_ranks(job, takes_part ? wait_of(job, firsts, floats) : 0.0);
  return {std::accumulate(waits.begin(), waits.end(), 0.0) / static_cast<double>(firsts.size())};
}

}  // namespace cortado
