#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

#include "cortado/app/commands.h"
#include "cortado/app/common.h"
#include "cortado/app/host_facts.h"
#include "cortado/app/measure.h"
#include "cortado/app/version.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/parallel_for.h"
#include "cortado/kernels/peak.h"
#include "cortado/machine/file.h"
#include "cortado/report/table.h"

namespace cortado {
namespace {

struct MachineArguments {
  MachineOptions options;
  std::string out;
  double seconds = 10;
  bool json = false;
};

CLI::Validator seconds_to_measure() {
  return CLI::Validator(
      [](const std::string& text) {
        double value = 0;
        const bool good = CLI::detail::lexical_cast(text, value) && value >= 0.1 && value <= 3600;
        return good ? std::string() : fmt::format("{} is not a number from 0.1 to 3600", text);
      },
      "NUMBER");
}

// What a rank tells the others of itself. Plain bytes.
struct RankFacts {
  char host[256] = "", processor[128] = "";
  int sockets = 0, cores = 0, threads = 0;
  int64_t memory = 0;
  double peak = 0, memory_bandwidth = 0, task_overhead = 0;
};

// Measured figures keep as many digits as they are worth, so that the file can be read.
double rounded(double value, int digits = 4) {
  if (value == 0) return 0;
  const double scale = std::pow(10.0, digits - 1 - static_cast<int>(std::floor(std::log10(value))));
  return std::round(value * scale) / scale;
}

Link rounded(const Link& link) {
  return {{rounded(link.latency.count)}, {rounded(link.bandwidth.bytes_per_second)}};
}

// All ranks measure at the same time: those of one machine share its memory and its power.
RankFacts measure_rank(Communicator& job, double seconds) {
  RankFacts facts;
  const HostFacts host = host_facts();
  host.name.copy(facts.host, sizeof facts.host - 1);
  host.processor.copy(facts.processor, sizeof facts.processor - 1);
  facts.sockets = host.sockets;
  facts.cores = host.cores;
  facts.threads = compute_threads();
  facts.memory = host.memory.count;
  job.barrier();
  facts.peak = measure_peak({0.5 * seconds});
  job.barrier();
  facts.memory_bandwidth = measure_memory_bandwidth({0.5 * seconds}).bytes_per_second;
  job.barrier();
  facts.task_overhead = measure_task_overhead().count;
  return facts;
}

std::vector<RankFacts> facts_of_ranks(Communicator& job, const RankFacts& mine) {
  std::vector<RankFacts> all;
  for (const auto& bytes : job.all_to_all_bytes(std::as_bytes(std::span(&mine, 1))))
    std::memcpy(static_cast<void*>(&all.emplace_back()), bytes.data(), sizeof mine);
  return all;
}

// The node of each rank, counted from 0: ranks of one host name. Throws UserError where they are mixed, since
// a machine's devices stand node by node.
std::vector<int> nodes_of_ranks(const std::vector<RankFacts>& ranks) {
  std::vector<int> nodes;
  std::vector<std::string> hosts;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::string host = ranks[rank].host;
    if (hosts.empty() || hosts.back() != host) {
      if (std::ranges::find(hosts, host) != hosts.end()) {
        throw UserError(
            fmt::format("rank {} runs on {}, as ranks before rank {} do: start the ranks host by host, as in "
                        "--launch \"mpiexec -hosts a,b -ppn {}\" or \"srun -m block\"",
                        rank, host, rank - 1, std::max<size_t>(1, ranks.size() / hosts.size())));
      }
      hosts.push_back(host);
    }
    nodes.push_back(static_cast<int>(hosts.size()) - 1);
  }
  return nodes;
}

// Ranks of a node share its memory evenly.
std::vector<Node> nodes_of(const std::vector<RankFacts>& ranks, const std::vector<int>& nodes) {
  constexpr int64_t page = int64_t{1} << 20;
  std::vector<Node> result(static_cast<size_t>(nodes.back()) + 1);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankFacts& facts = ranks[rank];
    Node& node = result[static_cast<size_t>(nodes[rank])];
    node.name = facts.host;
    node.sockets = facts.sockets;
    node.cores = facts.cores;
    const int64_t sharing = std::ranges::count(nodes, nodes[rank]);
    node.devices.push_back({.name = fmt::format("{} thread{}", facts.threads, facts.threads == 1 ? "" : "s"),
                            .peak = {rounded(facts.peak)},
                            .memory_bandwidth = {rounded(facts.memory_bandwidth)},
                            .memory = {facts.memory / sharing / page * page},
                            .task_overhead = {rounded(facts.task_overhead, 2)}});
  }
  return result;
}

std::vector<std::string> notes(const std::vector<RankFacts>& ranks, double seconds) {
  return {fmt::format("Measured by 'cortado machine', version {}, on {:%Y-%m-%d} in about {:g} seconds.",
                      version(), fmt::gmtime(std::time(nullptr)), seconds),
          fmt::format("{} rank{}; rank 0 on {}.", ranks.size(), ranks.size() == 1 ? "" : "s",
                      ranks.front().processor[0] != 0 ? ranks.front().processor : "an unknown processor"),
          "All figures are effective. Peak: multiply-adds on registers. Memory bandwidth: a triad, counting "
          "three "
          "floats an element. All ranks at a time. Memory: the node's by its ranks.",
          "Pairs: half of a round trip, nobody else sending. Network interface: all ranks of a node sending "
          "to the "
          "next node at a time."};
}

// Shares of the time: a third for what ranks do alone, the rest for what they do together.
Machine measure_machine(Communicator& job, double seconds) {
  const bool alone = job.size() == 1;
  const std::vector<RankFacts> ranks =
      facts_of_ranks(job, measure_rank(job, alone ? seconds : 0.3 * seconds));
  const std::vector<int> nodes = nodes_of_ranks(ranks);
  Machine machine{
      .name = ranks.front().host, .about = notes(ranks, seconds), .nodes = nodes_of(ranks, nodes)};
  if (alone) return machine;
  const std::vector<Link> pairs = measure_pairs(job, nodes, {0.35 * seconds});
  const std::vector<Bandwidth> nics = measure_nics(job, nodes, pairs);
  for (size_t n = 0; n < nics.size(); ++n) machine.nodes[n].nic = {rounded(nics[n].bytes_per_second)};
  for (const Link& link : pairs) machine.pairs.push_back(rounded(link));
  machine.calibration.allreduce = measure_allreduce(job, {0.35 * seconds});
  for (CollectiveTime& time : machine.calibration.allreduce) time.time = {rounded(time.time.count)};
  return machine;
}

void print_devices(const DeviceGraph& graph) {
  Table table({{"rank"},
               {"node", Table::Align::left},
               {"device", Table::Align::left},
               {"GFLOP/s"},
               {"memory GB/s"},
               {"memory GiB"},
               {"task us"}});
  for (int i = 0; i < graph.devices(); ++i) {
    const Device& device = graph.device(i);
    table.add({std::to_string(i), graph.node(graph.node_of(i)).name, device.name,
               fmt::format("{:.1f}", device.peak.per_second / 1e9),
               fmt::format("{:.1f}", device.memory_bandwidth.bytes_per_second / 1e9),
               fmt::format("{:.1f}", static_cast<double>(device.memory.count) / 0x1p30),
               fmt::format("{:.2f}", 1e6 * device.task_overhead.count)});
  }
  fmt::print("{}\n", table.text());
}

// The least, the median and the most of the links of one kind; nothing where there are none.
void add_links(Table& table, const DeviceGraph& graph, bool crossing, const std::string& title) {
  std::vector<double> latencies, bandwidths;
  for (int from = 0; from < graph.devices(); ++from) {
    for (int to = 0; to < graph.devices(); ++to) {
      if (from == to || graph.crosses_nodes(from, to) != crossing) continue;
      latencies.push_back(1e6 * graph.link(from, to).latency.count);
      bandwidths.push_back(1e-9 * graph.link(from, to).bandwidth.bytes_per_second);
    }
  }
  if (latencies.empty()) return;
  auto range = [](std::vector<double>& values) {
    std::ranges::sort(values);
    return fmt::format("{:.4g} / {:.4g} / {:.4g}", values.front(), values[values.size() / 2], values.back());
  };
  table.add({title, std::to_string(latencies.size() / 2), range(latencies), range(bandwidths)});
}

void print_links(const DeviceGraph& graph) {
  if (graph.devices() == 1) return;
  Table table({{"links", Table::Align::left}, {"pairs"}, {"latency us"}, {"GB/s (least / median / most)"}});
  add_links(table, graph, false, "within a node");
  add_links(table, graph, true, "between nodes");
  fmt::print("{}\n", table.text());
  for (int n = 0; n < graph.nodes() && graph.nodes() > 1; ++n) {
    fmt::print("network interface of {}: {:.3g} GB/s, shared by {} rank{}\n", graph.node(n).name,
               1e-9 * graph.nic(n).bytes_per_second, graph.devices_sharing_nic(n),
               graph.devices_sharing_nic(n) == 1 ? "" : "s");
  }
  Table sums({{"allreduce of ranks"}, {"KiB"}, {"us"}, {"GB/s"}});
  for (const CollectiveTime& one : graph.calibration().allreduce) {
    sums.add({std::to_string(one.devices), fmt::format("{}", one.bytes.count / 1024),
              fmt::format("{:.1f}", 1e6 * one.time.count),
              fmt::format("{:.3f}", 1e-9 * static_cast<double>(one.bytes.count) / one.time.count)});
  }
  fmt::print("{}{}\n", graph.nodes() > 1 ? "\n" : "", sums.text());
}

// Measuring takes its time: what cannot be written is refused before.
void check_folder(const std::string& out) {
  std::string folder = std::filesystem::path(out).parent_path().string();
  if (folder.empty()) folder = ".";
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw UserError(fmt::format(
        "--out {}: there is no folder {} that can be written; make it or give another", out, folder));
  }
}

void run_machine(const MachineArguments& a) {
  std::unique_ptr<Communicator> job = join_job(a.options);
  if (job->rank() == 0 && !a.out.empty()) check_folder(a.out);
  check_same_start(a.options, *job, {{"--seconds", std::to_string(a.seconds)}});
  const DeviceGraph graph(measure_machine(*job, a.seconds));
  if (job->rank() > 0) return;
  const std::string text = machine_text(graph);
  if (!a.out.empty()) write_file_atomically(a.out, text);
  if (a.json) {
    fmt::print("{}", text);
    return;
  }
  const Node& first = graph.node(0);
  fmt::print("{} node{}, {} rank{}; {} has {} core{} on {} socket{}\n\n", graph.nodes(),
             graph.nodes() == 1 ? "" : "s", graph.devices(), graph.devices() == 1 ? "" : "s", first.name,
             first.cores, first.cores == 1 ? "" : "s", first.sockets, first.sockets == 1 ? "" : "s");
  print_devices(graph);
  print_links(graph);
  if (!a.out.empty()) fmt::print("written to {}\n", a.out);
}

}  // namespace

Command add_machine_command(CLI::App& app) {
  auto a = std::make_shared<MachineArguments>();
  CLI::App* command =
      app.add_subcommand("machine", "Measure this machine or, on ranks, this cluster; write its file");
  command->add_option("--out", a->out, "Write the machine file (JSON, docs/machines.md)");
  command->add_option("--seconds", a->seconds, "About how long to measure; default: 10")
      ->check(seconds_to_measure());
  command->add_flag("--json", a->json, "Print the machine file in place of tables");
  add_rank_options(*command, a->options);
  return {command, [a] { run_machine(*a); }};
}

}  // namespace cortado
