#include "cortado/measure/probes.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>

#include "cortado/base/element_type.h"
#include "cortado/base/parallel_for.h"
#include "cortado/comm/values_of_ranks.h"
#include "cortado/device/memory.h"
#include "cortado/exec/lane_thread.h"
#include "cortado/kernels/peak.h"

namespace cortado {
namespace {

constexpr int64_t float_bytes = size_of(ElementType::f32);
constexpr int64_t longest_message = int64_t{1} << 22;  // floats: 16 MiB

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

int times_in(double duration, double once, int least, int most) {
  return static_cast<int>(std::clamp(duration / std::max(once, 1e-9), double(least), double(most)));
}

// Moves a message as the Executor's communication lane does.
void finish(Transmission& transmission) {
  transmission.start();
  while (!transmission.test()) std::this_thread::yield();
}

void send(Communicator& job, int peer, float* values, int64_t count) {
  finish(*job.exchange({{peer, values, count}}, {}, 0));
}
void receive(Communicator& job, int peer, float* values, int64_t count) {
  finish(*job.exchange({}, {{peer, values, count}}, 0));
}

// The two ends of a pair. The asking one says how many floats to send back and how often; no floats end it.
class Asking {
 public:
  Asking(Communicator& job, int peer) : job_(job), peer_(peer), buffer_({longest_message * float_bytes}) {}

  // Seconds of one way: half the median round trip.
  double one_way(int64_t count, int rounds) {
    float order[] = {static_cast<float>(count), static_cast<float>(rounds)};
    send(job_, peer_, order, 2);
    auto there = job_.exchange({{peer_, buffer_.floats(), count}}, {}, 0);
    auto back = job_.exchange({}, {{peer_, buffer_.floats(), count}}, 0);
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) {
      times.push_back(seconds_of([&] {
        finish(*there);
        finish(*back);
      }));
    }
    return median(std::move(times)) / 2;
  }
  void end() {
    float order[] = {0, 0};
    send(job_, peer_, order, 2);
  }

 private:
  Communicator& job_;
  int peer_;
  device::Memory buffer_;
};

void answer(Communicator& job, int peer) {
  const device::Memory buffer({longest_message * float_bytes});
  while (true) {
    float order[2];
    receive(job, peer, order, 2);
    const int64_t count = static_cast<int64_t>(order[0]);
    if (count == 0) return;
    auto there = job.exchange({}, {{peer, buffer.floats(), count}}, 0);
    auto back = job.exchange({{peer, buffer.floats(), count}}, {}, 0);
    for (int i = 0; i < static_cast<int>(order[1]); ++i) {
      finish(*there);
      finish(*back);
    }
  }
}

Link measure_link(Communicator& job, int peer, double duration) {
  constexpr int warm_up = 10;
  constexpr double long_enough = 1e-3;
  Asking asking(job, peer);
  asking.one_way(1, warm_up);
  double latency = asking.one_way(1, warm_up);
  latency = asking.one_way(1, times_in(duration * 0.3, 2 * latency, warm_up, 5000));
  int64_t count = int64_t{1} << 14;
  double once = asking.one_way(count, 2);
  while (once < long_enough && count < longest_message) {
    count *= 4;
    once = asking.one_way(count, 2);
  }
  once = asking.one_way(count, times_in(duration * 0.7, 2 * once, 3, 500));
  asking.end();
  const double moving = std::max(once - latency, once / 2);
  return {{latency}, {static_cast<double>(count * float_bytes) / moving}};
}

// One rank's value, at every rank.
template <typename T>
std::vector<T> of_all(Communicator& job, const std::vector<T>& mine) {
  std::vector<T> all;
  for (const auto& bytes : job.all_to_all_bytes(std::as_bytes(std::span(mine)))) {
    const size_t begin = all.size();
    all.resize(begin + bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(static_cast<void*>(all.data() + begin), bytes.data(), bytes.size());
  }
  return all;
}

// Ranks in a ring: each sends to the next one and receives from the one before, again and again, on a
// communication lane as in a training. It measures how much that slows down this rank's computing.
class Ring {
 public:
  // All members make it alike. A member's messages take `times` times about `message_seconds`.
  Ring(Communicator& job, const std::vector<int>& members, const std::vector<Link>& pairs, double seconds)
      : Ring(job, members, slowest(members, pairs, static_cast<size_t>(job.size())), seconds) {}

  // What it took of this rank's computing, and bytes that it sent and received meanwhile.
  struct Cost {
    double seconds = 0, bytes = 0;
  };
  Cost cost_of(double alone, double duration) {
    ended_ = 0;
    lane_.start();
    double beside = 0;
    const double spent = seconds_of([&] { beside = measure_compute_rate({duration}).mean; });
    const double bytes = 2.0 * static_cast<double>(ended_ * count_ * float_bytes);
    lane_.finish();
    return {(1 - beside / alone) * spent, bytes};
  }

 private:
  static constexpr double message_seconds = 5e-3;  // short against the duration, long against latencies

  Ring(Communicator& job, const std::vector<int>& members, const Link& link, double seconds)
      : count_(
            std::clamp(static_cast<int64_t>(link.bandwidth.bytes_per_second * message_seconds / float_bytes),
                       int64_t{1} << 12, longest_message)),
        times_(times_in(1.5 * seconds, link.time({count_ * float_bytes}).count, 2, 1 << 16)),
        sent_({count_ * float_bytes}),
        received_({count_ * float_bytes}),
        exchange_(exchange(job, members)),
        lane_(steps()) {}

  static Link slowest(const std::vector<int>& members, const std::vector<Link>& pairs, size_t ranks) {
    Link slowest = pairs[static_cast<size_t>(members[0]) * ranks + static_cast<size_t>(members[1])];
    for (size_t i = 1; i < members.size(); ++i) {
      const auto from = static_cast<size_t>(members[i]),
                 to = static_cast<size_t>(members[(i + 1) % members.size()]);
      const Link& link = pairs[from * ranks + to];
      if (link.bandwidth < slowest.bandwidth) slowest = link;
    }
    return slowest;
  }

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
  return median(std::move(overheads));
}

}  // namespace

Bandwidth measure_memory_bandwidth(Seconds duration) {
  constexpr int64_t count = int64_t{1} << 24;  // 64 MiB an array
  const device::Memory memory({3 * count * float_bytes});
  float *a = memory.floats(), *b = a + count, *c = b + count;
  auto sweep = [&] {
    parallel_ranges(count, [&](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) a[i] = b[i] + 3.0f * c[i];
    });
  };
  parallel_ranges(3 * count, [&](int64_t begin, int64_t end) { std::fill(a + begin, a + end, 1.0f); });
  double best = seconds_of(sweep), spent = best;
  while (spent < duration.count) {
    const double seconds = seconds_of(sweep);
    best = std::min(best, seconds);
    spent += seconds;
  }
  return {static_cast<double>(3 * count * float_bytes) / best};
}

Seconds measure_task_overhead() {
  constexpr int times = 1000;
  std::vector<char> touched(static_cast<size_t>(compute_threads()));
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    seconds.push_back(seconds_of([&] {
      parallel_for(compute_threads(), [&](int64_t thread) { touched[static_cast<size_t>(thread)] = 1; });
    }));
  }
  return {median(std::move(seconds))};
}

std::vector<std::vector<RankPair>> rounds_of_pairs(std::span<const int> nodes) {
  const int ranks = static_cast<int>(nodes.size());
  std::vector<RankPair> left;
  for (int a = 0; a < ranks; ++a)
    for (int b = a + 1; b < ranks; ++b) left.push_back({a, b});
  std::vector<std::vector<RankPair>> rounds;
  while (!left.empty()) {
    std::vector<char> busy(nodes.size());
    auto takes = [&](const RankPair& pair) {
      char &one = busy[static_cast<size_t>(nodes[static_cast<size_t>(pair.first)])],
           &other = busy[static_cast<size_t>(nodes[static_cast<size_t>(pair.second)])];
      const bool free = one == 0 && other == 0;
      if (free) one = other = 1;
      return free;
    };
    const auto rest = std::stable_partition(left.begin(), left.end(), takes);
    rounds.emplace_back(left.begin(), rest);
    left.erase(left.begin(), rest);
  }
  return rounds;
}

std::vector<Link> measure_pairs(Communicator& job, std::span<const int> nodes, Seconds duration) {
  const auto rounds = rounds_of_pairs(nodes);
  struct Measured {
    int from, to;
    double latency, bandwidth;
  };
  std::vector<Measured> mine;
  for (const auto& round : rounds) {
    job.barrier();
    for (const auto& [a, b] : round) {
      if (job.rank() == b) answer(job, a);
      if (job.rank() != a) continue;
      const Link link = measure_link(job, b, duration.count / static_cast<double>(rounds.size()));
      mine.push_back({a, b, link.latency.count, link.bandwidth.bytes_per_second});
    }
  }
  const size_t ranks = nodes.size();
  std::vector<Link> pairs(ranks * ranks);
  for (const Measured& one : of_all(job, mine)) {
    const Link link{{one.latency}, {one.bandwidth}};
    const auto from = static_cast<size_t>(one.from), to = static_cast<size_t>(one.to);
    pairs[from * ranks + to] = pairs[to * ranks + from] = link;  // a round trip goes both ways
  }
  return pairs;
}

std::vector<Bandwidth> measure_nics(Communicator& job, std::span<const int> nodes,
                                    const std::vector<Link>& pairs) {
  constexpr double message_seconds = 0.02;
  constexpr int repeats = 5;
  const int node_count = nodes.empty() ? 0 : nodes.back() + 1;
  std::vector<Bandwidth> rates(static_cast<size_t>(node_count));
  if (node_count < 2) return rates;
  for (int node = 0; node < node_count; ++node) {
    const int next = (node + 1) % node_count;
    std::vector<int> senders, receivers;
    for (int rank = 0; rank < job.size(); ++rank) {
      if (nodes[static_cast<size_t>(rank)] == node) senders.push_back(rank);
      if (nodes[static_cast<size_t>(rank)] == next) receivers.push_back(rank);
    }
    const Link& link =
        pairs[static_cast<size_t>(senders[0]) * nodes.size() + static_cast<size_t>(receivers[0])];
    const int64_t count =
        std::clamp(static_cast<int64_t>(link.bandwidth.bytes_per_second * message_seconds / float_bytes),
                   int64_t{1} << 14, longest_message);
    std::vector<MessagePart> sends, receives;
    std::vector<device::Memory> buffers;
    for (size_t i = 0; i < senders.size(); ++i) {
      const int sender = senders[i], receiver = receivers[i % receivers.size()];
      if (job.rank() != sender && job.rank() != receiver) continue;
      buffers.emplace_back(Bytes{count * float_bytes});
      if (job.rank() == sender) sends.push_back({receiver, buffers.back().floats(), count});
      if (job.rank() == receiver) receives.push_back({sender, buffers.back().floats(), count});
    }
    const auto exchange = job.exchange(sends, receives, 1);
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) {
      job.barrier();
      const double mine = seconds_of([&] { finish(*exchange); });
      times.push_back(std::ranges::max(of_all(job, std::vector{mine})));
    }
    const double bytes = static_cast<double>(count * float_bytes) * static_cast<double>(senders.size());
    const Bandwidth rate{bytes / median(std::move(times))};
    for (int end : {node, next})
      rates[static_cast<size_t>(end)] = std::max(rates[static_cast<size_t>(end)], rate);
  }
  return rates;
}

MessageOverhead measure_message_overhead(Communicator& job, std::span<const int> nodes,
                                         const std::vector<Link>& pairs, Seconds duration) {
  std::vector<int> neighbours, firsts;
  bool shared = false;  // some node
  for (int rank = 0; rank < job.size(); ++rank) {
    const int node = nodes[static_cast<size_t>(rank)];
    if (node == nodes[static_cast<size_t>(job.rank())]) neighbours.push_back(rank);
    if (rank == 0 || node != nodes[static_cast<size_t>(rank) - 1])
      firsts.push_back(rank);
    else
      shared = true;
  }
  const bool several = firsts.size() > 1;
  const Seconds each{duration.count / (shared && several ? 2 : 1)};
  if (neighbours.size() < 2) neighbours.clear();
  if (std::ranges::find(firsts, job.rank()) == firsts.end()) firsts.clear();
  MessageOverhead overhead;
  if (shared) overhead.node = ring_overhead(job, neighbours, pairs, each);
  if (several) overhead.network = ring_overhead(job, firsts, pairs, each);
  return overhead;
}

std::vector<CollectiveTime> measure_allreduce(Communicator& job, Seconds duration) {
  constexpr int64_t sizes[] = {1 << 8, 1 << 14, 1 << 18, 1 << 22};  // floats
  std::vector<int> groups;
  for (int members = 2; members < job.size(); members *= 2) groups.push_back(members);
  if (job.size() > 1) groups.push_back(job.size());
  const double share =
      duration.count / static_cast<double>(std::max<size_t>(1, groups.size() * std::size(sizes)));
  const device::Memory buffer({sizes[3] * float_bytes});
  std::vector<CollectiveTime> times;
  for (int members : groups) {
    job.barrier();
    if (job.rank() >= members) continue;
    std::vector<int> group(static_cast<size_t>(members));
    std::iota(group.begin(), group.end(), 0);
    double once = 0;  // as rank 0 sees it, for all
    const auto told = job.allreduce(group, &once, 1);
    int64_t before = 0;
    for (int64_t count : sizes) {
      const double expected =
          before == 0 ? 0 : once * static_cast<double>(count) / static_cast<double>(before);
      if (2 * expected > 4 * share + 1) break;
      const auto sum = job.allreduce(group, buffer.floats(), count);
      finish(*sum);
      const double first = seconds_of([&] { finish(*sum); });
      once = job.rank() == 0 ? first : 0;
      finish(*told);
      const int rounds = times_in(share, once, 2, 2000);
      once = seconds_of([&] {
        for (int i = 0; i < rounds; ++i) finish(*sum);
      });
      once = job.rank() == 0 ? once / rounds : 0;
      finish(*told);
      times.push_back({members, {count * float_bytes}, {once}});
      before = count;
    }
  }
  job.barrier();
  return times;
}

}  // namespace cortado
