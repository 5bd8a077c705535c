#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "cortado/app/commands.h"
#include "cortado/app/common.h"
#include "cortado/app/help.h"
#include "cortado/app/named_files.h"
#include "cortado/app/number_option.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/machine/file.h"
#include "cortado/measure/job_machine.h"
#include "cortado/report/table.h"

namespace cortado {
namespace {

struct MachineArguments {
  MachineOptions options;
  std::string out;
  double seconds = 10;
  bool json = false;
};

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
  const MessageOverhead& overhead = graph.calibration().message_overhead;
  fmt::print("{}a MB sent or received costs computing {:.0f} us within a node", graph.nodes() > 1 ? "\n" : "",
             1e12 * overhead.node);
  fmt::print("{}\n\n",
             graph.nodes() > 1 ? fmt::format(", {:.0f} us between nodes", 1e12 * overhead.network) : "");
  Table sums({{"allreduce of ranks"}, {"KiB"}, {"us"}, {"GB/s"}});
  for (const CollectiveTime& one : graph.calibration().allreduce) {
    sums.add({std::to_string(one.devices), fmt::format("{}", one.bytes.count / 1024),
              fmt::format("{:.1f}", 1e6 * one.time.count),
              fmt::format("{:.3f}", 1e-9 * static_cast<double>(one.bytes.count) / one.time.count)});
  }
  fmt::print("{}\n", sums.text());
}

void run_machine(const MachineArguments& a) {
  std::unique_ptr<Communicator> job = join_job(a.options);
  CommandFiles files;
  files.writes("--out", a.out);
  check(files, *job);
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
  command->add_option("--out", a->out, "Write the machine file (JSON, docs/reference/machines.md)");
  add_number(*command, "--seconds", a->seconds, 0.1, 3600, "About how long to measure");
  command->add_flag("--json", a->json, "Print the machine file in place of tables");
  add_rank_options(*command, a->options);
  command->footer(help_footer({"cortado machine --ranks 2 --out here.json"}));
  refuse_empty_names(*command, {"--out"});
  return {command, [a] { run_machine(*a); }};
}

}  // namespace cortado
