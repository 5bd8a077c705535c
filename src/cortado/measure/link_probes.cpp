#include "cortado/measure/link_probes.h"

#include <algorithm>
#include <cstring>

#include "cortado/device/memory.h"
#include "cortado/measure/probe_timing.h"

namespace cortado {
namespace {

void send(Communicator& job, int peer, float* values, int64_t count) {
  probes::finish(*job.exchange({{peer, values, count}}, {}, 0));
}
void receive(Communicator& job, int peer, float* values, int64_t count) {
  probes::finish(*job.exchange({}, {{peer, values, count}}, 0));
}

// The two ends of a pair. The asking one says how many floats to send back and how often; no floats end it.
class Asking {
 public:
  Asking(Communicator& job, int peer)
      : job_(job), peer_(peer), buffer_({probes::longest_message * probes::float_bytes}) {}

  // Seconds of one way: half the median round trip.
  double one_way(int64_t count, int rounds) {
    float order[] = {static_cast<float>(count), static_cast<float>(rounds)};
    send(job_, peer_, order, 2);
    auto there = job_.exchange({{peer_, buffer_.floats(), count}}, {}, 0);
    auto back = job_.exchange({}, {{peer_, buffer_.floats(), count}}, 0);
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) {
      times.push_back(probes::seconds_of([&] {
        probes::finish(*there);
        probes::finish(*back);
      }));
    }
    return probes::median(std::move(times)) / 2;
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
  const device::Memory buffer({probes::longest_message * probes::float_bytes});
  while (true) {
    float order[2];
    receive(job, peer, order, 2);
    const int64_t count = static_cast<int64_t>(order[0]);
    if (count == 0) return;
    auto there = job.exchange({}, {{peer, buffer.floats(), count}}, 0);
    auto back = job.exchange({{peer, buffer.floats(), count}}, {}, 0);
    for (int i = 0; i < static_cast<int>(order[1]); ++i) {
      probes::finish(*there);
      probes::finish(*back);
    }
  }
}

Link measure_link(Communicator& job, int peer, double duration) {
  constexpr int warm_up = 10;
  constexpr double long_enough = 1e-3;
  Asking asking(job, peer);
  asking.one_way(1, warm_up);
  double latency = asking.one_way(1, warm_up);
  latency = asking.one_way(1, probes::times_in(duration * 0.3, 2 * latency, warm_up, 5000));
  int64_t count = int64_t{1} << 14;
  double once = asking.one_way(count, 2);
  while (once < long_enough && count < probes::longest_message) {
    count *= 4;
    once = asking.one_way(count, 2);
  }
  once = asking.one_way(count, probes::times_in(duration * 0.7, 2 * once, 3, 500));
  asking.end();
  const double moving = std::max(once - latency, once / 2);
  return {{latency}, {static_cast<double>(count * probes::float_bytes) / moving}};
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

}  // namespace

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

std::vector<int> first_ranks(std::span<const int> nodes) {
  std::vector<int> firsts;
  for (size_t rank = 0; rank < nodes.size(); ++rank)
    if (rank == 0 || nodes[rank] != nodes[rank - 1]) firsts.push_back(static_cast<int>(rank));
  return firsts;
}

Link slowest_of_ring(std::span<const int> members, const std::vector<Link>& pairs, int ranks) {
  const auto link = [&](size_t i) -> const Link& {
    const auto from = static_cast<size_t>(members[i]),
               to = static_cast<size_t>(members[(i + 1) % members.size()]);
    return pairs[from * static_cast<size_t>(ranks) + to];
  };
  Link slowest = link(0);
  for (size_t i = 1; i < members.size(); ++i)
    if (link(i).bandwidth < slowest.bandwidth) slowest = link(i);
  return slowest;
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
    const int64_t count = std::clamp(
        static_cast<int64_t>(link.bandwidth.bytes_per_second * message_seconds / probes::float_bytes),
        int64_t{1} << 14, probes::longest_message);
    std::vector<MessagePart> sends, receives;
    std::vector<device::Memory> buffers;
    for (size_t i = 0; i < senders.size(); ++i) {
      const int sender = senders[i], receiver = receivers[i % receivers.size()];
      if (job.rank() != sender && job.rank() != receiver) continue;
      buffers.emplace_back(Bytes{count * probes::float_bytes});
      if (job.rank() == sender) sends.push_back({receiver, buffers.back().floats(), count});
      if (job.rank() == receiver) receives.push_back({sender, buffers.back().floats(), count});
    }
    const auto exchange = job.exchange(sends, receives, 1);
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) {
      job.barrier();
      const double mine = probes::seconds_of([&] { probes::finish(*exchange); });
      times.push_back(std::ranges::max(of_all(job, std::vector{mine})));
    }
    const double bytes =
        static_cast<double>(count * probes::float_bytes) * static_cast<double>(senders.size());
    const Bandwidth rate{bytes / probes::median(std::move(times))};
    for (int end : {node, next})
      rates[static_cast<size_t>(end)] = std::max(rates[static_cast<size_t>(end)], rate);
  }
  return rates;
}

}  // namespace cortado
