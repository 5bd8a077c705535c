#include "cortado/measure/message_overhead.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>

#include "cortado/comm/values_of_ranks.h"
#include "cortado/device/memory.h"
#include "cortado/exec/lane_thread.h"
#include "cortado/kernels/peak.h"
#include "cortado/measure/link_probes.h"
#include "cortado/measure/probe_timing.h"

namespace cortado {
namespace {

// Ranks in a ring: each sends to the next one and receives from the one before, again and again, on a
// communication lane as in a training. It measures how much that slows down this rank's computing.
class Ring {
 public:
  // All members make it with equal arguments. A member's messages take `times` times about `message_seconds`.
  Ring(Communicator& job, const std::vector<int>& members, const std::vector<Link>& pairs, double seconds)
      : Ring(job, members, slowest_of_ring(members, pairs, job.size()), seconds) {}

  // What it took of this rank's computing, and bytes that it sent and received meanwhile.
  struct Cost {
    double seconds = 0, bytes = 0;
  };
  Cost cost_of(double alone, double duration) {
    ended_ = 0;
    lane_.start();
    double beside = 0;
    const double spent = probes::seconds_of([&] { beside = measure_compute_rate({duration}).mean; });
    const double bytes = 2.0 * static_cast<double>(ended_ * count_ * probes::float_bytes);
    lane_.finish();
    return {(1 - beside / alone) * spent, bytes};
  }

 private:
  static constexpr double message_seconds = 5e-3;  // short against the duration, long against latencies

  Ring(Communicator& job, const std::vector<int>& members, const Link& link, double seconds)
      : count_(std::clamp(
            static_cast<int64_t>(link.bandwidth.bytes_per_second * message_seconds / probes::float_bytes),
            int64_t{1} << 12, probes::longest_message)),
        times_(probes::times_in(1.5 * seconds, link.time({count_ * probes::float_bytes}).count, 2, 1 << 16)),
        sent_({count_ * probes::float_bytes}),
        received_({count_ * probes::float_bytes}),
        exchange_(exchange(job, members)),
        lane_(steps()) {}

  std::unique_ptr<Transmission> exchange(Communicator& job, const std::vector<int>& members) const {
    const auto at = static_cast<size_t>(std::ranges::find(members, job.rank()) - members.begin());
    const int next = members[(at + 1) % members.size()],
              before = members[(at + members.size() - 1) % members.size()];
    return job.exchange({{next, sent_.floats(), count_}}, {{before, received_.floats(), count_}}, 2);
  }

  LaneThread::Steps steps() {
    LaneThread::Steps steps;
    for (int i = 0; i < times_; ++i) {
      steps.order.emplace_back(i);
      steps.waits.push_back(i == 0 ? std::vector<StepIndex>{} : std::vector{StepIndex(i - 1)});
    }
    steps.waits_before.resize(steps.waits.size());
    steps.carried.resize(steps.waits.size());
    steps.needed.resize(steps.waits.size());
    steps.start = [this](StepIndex) { exchange_->start(); };
    steps.finished = [this](StepIndex, bool) {
      const bool over = exchange_->test();
      if (over) ++ended_;
      return over;
    };
    return steps;
  }

  const int64_t count_;  // floats
  const int times_;
  const device::Memory sent_, received_;
  const std::unique_ptr<Transmission> exchange_;
  std::atomic<int64_t> ended_ = 0;
  LaneThread lane_;
};

// Seconds of computing that a byte costs, over all rings. `members`: this rank's; empty: it is in none.
double ring_overhead(Communicator& job, const std::vector<int>& members, const std::vector<Link>& pairs,
                     Seconds duration) {
  constexpr int rounds = 3;
  const double once = duration.count / (2 * rounds);
  std::optional<Ring> ring;
  if (!members.empty()) ring.emplace(job, members, pairs, once);
  std::vector<double> overheads;
  for (int round = 0; round < rounds; ++round) {
    job.barrier();
    const double alone = measure_compute_rate({once}).mean;
    job.barrier();
    Ring::Cost all;
    for (const Ring::Cost& cost : values_of_ranks(job, ring ? ring->cost_of(alone, once) : Ring::Cost{})) {
      all.seconds += cost.seconds;
      all.bytes += cost.bytes;
    }
    overheads.push_back(all.bytes > 0 ? std::max(0.0, all.seconds / all.bytes) : 0);
  }
  return probes::median(std::move(overheads));
}

}  // namespace

MessageOverhead measure_message_overhead(Communicator& job, std::span<const int> nodes,
                                         const std::vector<Link>& pairs, Seconds duration) {
  std::vector<int> neighbours, firsts = first_ranks(nodes);
  for (int rank = 0; rank < job.size(); ++rank)
    if (nodes[static_cast<size_t>(rank)] == nodes[static_cast<size_t>(job.rank())])
      neighbours.push_back(rank);
  const bool shared = std::ssize(firsts) < job.size();  // some node
  const bool several = firsts.size() > 1;
  const Seconds each{duration.count / (shared && several ? 2 : 1)};
  if (neighbours.size() < 2) neighbours.clear();
  if (std::ranges::find(firsts, job.rank()) == firsts.end()) firsts.clear();
  MessageOverhead overhead;
  if (shared) overhead.node = ring_overhead(job, neighbours, pairs, each);
  if (several) overhead.network = ring_overhead(job, firsts, pairs, each);
  return overhead;
}

}  // namespace cortado
