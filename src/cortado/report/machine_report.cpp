#include "cortado/report/machine_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include "cortado/report/table.h"

namespace cortado {
namespace {

std::string devices_text(const DeviceGraph& graph) {
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
  return table.text() + "\n";
}

// Adds a row each for the least, the median and the most of the links of one kind; none where there are none.
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

std::string links_text(const DeviceGraph& graph) {
  if (graph.devices() == 1) return "";
  Table table({{"links", Table::Align::left}, {"pairs"}, {"latency us"}, {"GB/s (least / median / most)"}});
  add_links(table, graph, false, "within a node");
  add_links(table, graph, true, "between nodes");
  std::string text = table.text() + "\n";
  for (int n = 0; n < graph.nodes() && graph.nodes() > 1; ++n)
    text += fmt::format("network interface of {}: {:.3g} GB/s, shared by {}\n", graph.node(n).name,
                        1e-9 * graph.nic(n).bytes_per_second, counted(graph.devices_sharing_nic(n), "rank"));
  const MessageOverhead& overhead = graph.calibration().message_overhead;
  text += fmt::format("{}a MB sent or received costs computing {:.0f} us within a node",
                      graph.nodes() > 1 ? "\n" : "", 1e12 * overhead.node);
  if (graph.nodes() > 1)
    text += fmt::format(", {:.0f} us between nodes; a message waits {:.0f} us where a sum uses its link",
                        1e12 * overhead.network, 1e6 * graph.calibration().busy_link.count);
  Table sums({{"allreduce of ranks"}, {"KiB"}, {"us"}, {"GB/s"}});
  for (const CollectiveTime& one : graph.calibration().allreduce) {
    sums.add({std::to_string(one.devices), fmt::format("{}", one.bytes.count / 1024),
              fmt::format("{:.1f}", 1e6 * one.time.count),
              fmt::format("{:.3f}", 1e-9 * static_cast<double>(one.bytes.count) / one.time.count)});
  }
  return text + "\n\n" + sums.text() + "\n";
}

}  // namespace

std::string machine_report(const DeviceGraph& graph) {
  const Node& first = graph.node(0);
  return fmt::format("{}, {}; {} has {} on {}\n\n", counted(graph.nodes(), "node"),
                     counted(graph.devices(), "rank"), first.name, counted(first.cores, "core"),
                     counted(first.sockets, "socket")) +
         devices_text(graph) + links_text(graph);
}

}  // namespace cortado
