#include "cortado/measure/job_machine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <span>

#include "cortado/base/compute_threads.h"
#include "cortado/base/error.h"
#include "cortado/base/version.h"
#include "cortado/comm/values_of_ranks.h"
#include "cortado/device/cuda.h"
#include "cortado/kernels/instruction_set.h"
#include "cortado/kernels/peak.h"
#include "cortado/measure/allreduce_probe.h"
#include "cortado/measure/busy_link.h"
#include "cortado/measure/device_probes.h"
#include "cortado/measure/host_facts.h"
#include "cortado/measure/link_probes.h"
#include "cortado/measure/message_overhead.h"

namespace cortado {
namespace {

constexpr double giga = 1e9;

// Measured figures keep as many digits as they are worth, so that the file can be read.
double rounded(double value, int digits = 4) {
  if (value == 0) return 0;
  const double scale = std::pow(10.0, digits - 1 - static_cast<int>(std::floor(std::log10(value))));
  return std::round(value * scale) / scale;
}

Link rounded(const Link& link) {
  return {{rounded(link.latency.count)}, {rounded(link.bandwidth.bytes_per_second)}};
}

RankFacts rank_facts(const device::DeviceRuntime& device) {
  RankFacts facts;
  const HostFacts host = host_facts();
  host.name.copy(facts.host, sizeof facts.host - 1);
  host.processor.copy(facts.processor, sizeof facts.processor - 1);
  kernel_instruction_set().copy(facts.instruction_set, sizeof facts.instruction_set - 1);
  facts.sockets = host.sockets;
  facts.cores = host.cores;
  facts.threads = compute_threads();
  facts.memory = host.memory.count;
  const std::string words = device_text(device);
  words.copy(facts.device, sizeof facts.device - 1);
  if (!words.empty()) facts.instruction_set[0] = 0;
  const auto gpus = device.runs_host_functions() ? std::vector<device::Gpu>{} : device::gpus();
  facts.own_memory = !gpus.empty();
  if (facts.own_memory) facts.memory = gpus.front().memory.count;
  return facts;
}

// Several sustained runs, since what disturbs one of them disturbs few.
constexpr double least_rate_seconds = 0.5;

// All ranks measure at the same time: those of one machine share its memory and its power.
RankFacts measure_rank(Communicator& job, double seconds, device::DeviceRuntime& device) {
  RankFacts facts = rank_facts(device);
  const bool devices = on_devices(facts_of_job(job, device));
  job.barrier();
  if (devices) {
    const DeviceRates rates = measure_device(device);
    facts.peak = facts.sustained = rates.flops;
    facts.memory_bandwidth = rates.memory_bandwidth.bytes_per_second;
    facts.task_overhead = rates.task_overhead.count;
    return facts;
  }
  const ComputeRate rate = measure_compute_rate({std::max(0.5 * seconds, least_rate_seconds)});
  facts.peak = rate.peak;
  facts.sustained = rate.sustained;
  job.barrier();
  facts.memory_bandwidth = measure_memory_bandwidth({0.5 * seconds}).bytes_per_second;
  job.barrier();
  facts.task_overhead = measure_task_overhead().count;
  return facts;
}

// Whether ranks get so unequal parts of their cores' time, or compute at so unequal rates, that it is no
// chance, as it is where a node has more threads than cores.
bool unequal(const std::vector<RankFacts>& ranks, const std::vector<int>& nodes) {
  constexpr double chance = 1.25;
  const bool devices = on_devices(ranks);
  if (devices && !mixed_devices(ranks)) return false;
  std::vector<int> threads(ranks.size());  // per node
  for (size_t rank = 0; rank < ranks.size() && !devices; ++rank) {
    int& all = threads[static_cast<size_t>(nodes[rank])];
    if ((all += ranks[rank].threads) > ranks[rank].cores) return false;
  }
  const auto [least, most] = std::ranges::minmax(ranks, {}, &RankFacts::sustained);
  return most.sustained > chance * least.sustained;
}

// Ranks of a node share its memory evenly.
std::vector<Node> nodes_of(const std::vector<RankFacts>& ranks, const std::vector<int>& nodes) {
  constexpr int64_t page = int64_t{1} << 20;
  const bool weighed = unequal(ranks, nodes);
  std::vector<Node> result(static_cast<size_t>(nodes.back()) + 1);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankFacts& facts = ranks[rank];
    Node& node = result[static_cast<size_t>(nodes[rank])];
    node.name = facts.host;
    node.sockets = facts.sockets;
    node.cores = facts.cores;
    const int64_t sharing = facts.own_memory ? 1 : std::ranges::count(nodes, nodes[rank]);
    const std::string threads = fmt::format("{} thread{}", facts.threads, facts.threads == 1 ? "" : "s");
    node.devices.push_back({.name = facts.device[0] != 0 ? facts.device : threads,
                            .peak = {rounded(facts.peak)},
                            .memory_bandwidth = {rounded(facts.memory_bandwidth)},
                            .memory = {facts.memory / sharing / page * page},
                            .task_overhead = {rounded(facts.task_overhead, 2)},
                            .instruction_set = facts.instruction_set,
                            .weight = weighed ? rounded(facts.sustained / giga) : 0});
  }
  return result;
}

std::vector<std::string> notes(const std::vector<RankFacts>& ranks, double seconds) {
  return {fmt::format("Measured by 'cortado machine', version {}, on {:%Y-%m-%d} in about {:g} seconds.",
                      version(), fmt::gmtime(std::time(nullptr)), seconds),
          fmt::format("{} rank{}; rank 0 on {}.", ranks.size(), ranks.size() == 1 ? "" : "s",
                      ranks.front().processor[0] != 0 ? ranks.front().processor : "an unknown processor"),
          "All figures are effective. Peak: multiply-adds on registers. Memory bandwidth: a triad, counting "
          "three floats an element. All ranks at a time. Memory: the node's by its ranks.",
          "Pairs: half of a round trip, nobody else sending. Network interface: all ranks of a node sending "
          "to the next node at a time. Message overhead: what multiply-adds lose to messages round a ring. "
          "Busy link: what a small sum takes longer beside a large one."};
}

}  // namespace

std::vector<RankFacts> facts_of_job(Communicator& job, const device::DeviceRuntime& device) {
  return values_of_ranks(job, rank_facts(device));
}

bool on_devices(const std::vector<RankFacts>& ranks) {
  return std::ranges::any_of(ranks, [](const RankFacts& one) { return one.device[0] != 0; });
}

bool mixed_devices(const std::vector<RankFacts>& ranks) {
  return std::ranges::any_of(
      ranks, [&](const RankFacts& one) { return std::string_view(one.device) != ranks.front().device; });
}

std::vector<int> nodes_of_ranks(const std::vector<RankFacts>& ranks) {
  std::vector<int> nodes;
  std::vector<std::string> hosts;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::string host = ranks[rank].host;
    if (hosts.empty() || hosts.back() != host) {
      if (std::ranges::find(hosts, host) != hosts.end()) {
        throw UserError(
            fmt::format("rank {} runs on {}, as ranks before rank {} do: start the ranks host by host, as "
                        "\"mpiexec -hosts a,b -ppn {}\" and \"srun -m block\" do",
                        rank, host, rank - 1, std::max<size_t>(1, ranks.size() / hosts.size())));
      }
      hosts.push_back(host);
    }
    nodes.push_back(static_cast<int>(hosts.size()) - 1);
  }
  return nodes;
}

// Shares of the time: a third for what ranks do alone, the rest for what they do together.
Machine measure_machine(Communicator& job, double seconds, device::DeviceRuntime& device) {
  const bool alone = job.size() == 1;
  const std::vector<RankFacts> ranks =
      values_of_ranks(job, measure_rank(job, alone ? seconds : 0.3 * seconds, device));
  const std::vector<int> nodes = nodes_of_ranks(ranks);
  Machine machine{
      .name = ranks.front().host, .about = notes(ranks, seconds), .nodes = nodes_of(ranks, nodes)};
  if (alone) return machine;
  const std::vector<Link> pairs = measure_pairs(job, nodes, {0.3 * seconds});
  const std::vector<Bandwidth> nics = measure_nics(job, nodes, pairs);
  for (size_t n = 0; n < nics.size(); ++n) machine.nodes[n].nic = {rounded(nics[n].bytes_per_second)};
  for (const Link& link : pairs) machine.pairs.push_back(rounded(link));
  const MessageOverhead overhead = measure_message_overhead(job, nodes, pairs, {0.15 * seconds});
  machine.calibration.message_overhead = {rounded(overhead.node, 2), rounded(overhead.network, 2)};
  machine.calibration.busy_link = {rounded(measure_busy_link(job, nodes, pairs, {0.05 * seconds}).count, 2)};
  machine.calibration.allreduce = measure_allreduce(job, {0.2 * seconds});
  for (CollectiveTime& time : machine.calibration.allreduce) time.time = {rounded(time.time.count)};
  return machine;
}

std::string from_first_rank(Communicator& job, const std::string& text) {
  const std::string mine = job.rank() == 0 ? text : "";
  const auto all = job.all_to_all_bytes(std::as_bytes(std::span(mine)));
  return {reinterpret_cast<const char*>(all[0].data()), all[0].size()};
}

}  // namespace cortado
