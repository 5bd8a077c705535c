#include <fmt/format.h>
#include <functional>

#include "cortado/machine/file.h"
#include "cortado/machine/file_keys.h"

namespace cortado {
namespace {

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string link_text(const Link& link) {
  return fmt::format("\"latency_us\": {}, \"bandwidth_gb_per_s\": {}", number_text(link.latency.count, micro),
                     number_text(link.bandwidth.bytes_per_second, giga));
}

std::string count_text(size_t count) { return count == 1 ? "" : fmt::format("\"count\": {}, ", count); }

// Equal neighbours are one element with a "count": text_of(value, count).
template <typename T>
std::string run_texts(const std::vector<T>& values, const std::string& separator,
                      const std::function<std::string(const T&, size_t)>& text_of) {
  std::string text;
  for (size_t begin = 0, end = 0; begin < values.size(); begin = end) {
    while (end < values.size() && values[end] == values[begin]) ++end;
    if (begin > 0) text += separator;
    text += '{' + text_of(values[begin], end - begin) + '}';
  }
  return text;
}

// Begins with a comma; empty where the price is not known.
std::string price_text(double price_per_hour) {
  return price_per_hour > 0 ? fmt::format(", \"price_per_hour\": {}", number_text(price_per_hour, plain))
                            : "";
}

std::string peak_text(const Device& device) {
  const std::string f32 = number_text(device.peak.per_second, giga);
  if (device.bf16_peak.per_second == 0) return f32;
  return fmt::format("{{\"f32\": {}, \"bf16\": {}}}", f32, number_text(device.bf16_peak.per_second, giga));
}

std::string device_text(const Device& device, size_t count) {
  std::string text = count_text(count);
  if (!device.name.empty()) text += fmt::format("\"name\": {}, ", quoted(device.name));
  text += fmt::format("\"gflops\": {}, \"memory_bandwidth_gb_per_s\": {}, \"memory_gib\": {}",
                      peak_text(device), number_text(device.memory_bandwidth.bytes_per_second, giga),
                      number_text(static_cast<double>(device.memory.count), gibi));
  if (device.task_overhead.count > 0)
    text += fmt::format(", \"task_overhead_us\": {}", number_text(device.task_overhead.count, micro));
  if (!device.instruction_set.empty())
    text += fmt::format(", \"instruction_set\": {}", quoted(device.instruction_set));
  if (device.weight > 0) text += fmt::format(", \"weight\": {}", number_text(device.weight, plain));
  return text + price_text(device.price_per_hour);
}

std::string node_text(const Node& node, size_t count) {
  std::string text = count_text(count);
  if (!node.name.empty()) text += fmt::format("\"name\": {}, ", quoted(node.name));
  if (node.sockets > 0) text += fmt::format("\"sockets\": {}, ", node.sockets);
  if (node.cores > 0) text += fmt::format("\"cores\": {}, ", node.cores);
  if (!text.empty()) text.replace(text.size() - 1, 1, "\n     ");
  text += fmt::format("\"devices\": [\n      {}\n     ]",
                      run_texts<Device>(node.devices, ",\n      ", device_text));
  if (!node.links.empty()) {
    text += ",\n     \"links\": [";
    for (size_t i = 0; i < node.links.size(); ++i) {
      text += fmt::format("{}\n      {{\"group\": {}, {}}}", i == 0 ? "" : ",", node.links[i].group,
                          link_text(node.links[i].link));
    }
    text += "\n     ]";
  }
  if (node.nic.bytes_per_second > 0)
    text +=
        fmt::format(",\n     \"nic_bandwidth_gb_per_s\": {}", number_text(node.nic.bytes_per_second, giga));
  if (node.bus.bytes_per_second > 0)
    text +=
        fmt::format(",\n     \"bus_bandwidth_gb_per_s\": {}", number_text(node.bus.bytes_per_second, giga));
  if (node.host.bytes_per_second > 0)
    text +=
        fmt::format(",\n     \"host_bandwidth_gb_per_s\": {}", number_text(node.host.bytes_per_second, giga));
  return text + price_text(node.price_per_hour);
}

// One matrix of "pairs".
std::string matrix_text(size_t devices, const std::function<std::string(size_t pair)>& number_of) {
  std::string text = "[";
  for (size_t from = 0; from < devices; ++from) {
    text += from == 0 ? "\n      [" : ",\n      [";
    for (size_t to = 0; to < devices; ++to) text += (to == 0 ? "" : ", ") + number_of(from * devices + to);
    text += ']';
  }
  return text + "\n    ]";
}

std::string pairs_text(const std::vector<Link>& pairs, size_t devices) {
  const std::string latencies =
      matrix_text(devices, [&](size_t pair) { return number_text(pairs[pair].latency.count, micro); });
  const std::string bandwidths = matrix_text(
      devices, [&](size_t pair) { return number_text(pairs[pair].bandwidth.bytes_per_second, giga); });
  return fmt::format("{{\n    \"latency_us\": {},\n    \"bandwidth_gb_per_s\": {}\n  }}", latencies,
                     bandwidths);
}

std::string factors_text(const TaskFactors& factors) {
  std::string text;
  for (size_t kind = 0; kind < task_kinds; ++kind) {
    text += fmt::format("{}\n      \"{}\": {{", kind == 0 ? "" : ",", kind_keys[kind]);
    for (size_t pass = 0; pass < task_passes; ++pass) {
      text += fmt::format("{}\"{}\": {}", pass == 0 ? "" : ", ", pass_keys[pass],
                          number_text(factors.values[kind][pass], plain));
    }
    text += '}';
  }
  return "{" + text + "\n    }";
}

// Factors of 1, and overheads and waits of 0, are left out.
std::string calibration_text(const Calibration& calibration) {
  std::vector<std::string> parts;
  auto add = [&](const char* key, const std::string& text) {
    parts.push_back(fmt::format("\n    \"{}\": {}", key, text));
  };
  if (calibration.efficiency != TaskFactors{}) add("efficiency", factors_text(calibration.efficiency));
  if (calibration.correction != TaskFactors{}) add("correction", factors_text(calibration.correction));
  if (calibration.exchange_correction != 1)
    add("exchange_correction", number_text(calibration.exchange_correction, plain));
  if (calibration.collective_correction != 1)
    add("collective_correction", number_text(calibration.collective_correction, plain));
  if (const MessageOverhead& overhead = calibration.message_overhead; overhead != MessageOverhead{}) {
    add("message_overhead", fmt::format("{{\"node_us_per_mb\": {}, \"network_us_per_mb\": {}}}",
                                        number_text(overhead.node, micro_per_mega),
                                        number_text(overhead.network, micro_per_mega)));
  }
  if (calibration.busy_link.count != 0) add("busy_link_us", number_text(calibration.busy_link.count, micro));
  std::string times;
  for (const CollectiveTime& time : calibration.allreduce) {
    times +=
        fmt::format("{}\n      {{\"devices\": {}, \"bytes\": {}, \"time_us\": {}}}", times.empty() ? "" : ",",
                    time.devices, time.bytes.count, number_text(time.time.count, micro));
  }
  if (!times.empty()) add("allreduce", "[" + times + "\n    ]");
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

}  // namespace

std::string machine_text(const DeviceGraph& graph) {
  const Machine& machine = graph.machine();
  std::string text = fmt::format("{{\n  \"format\": \"{}\",\n  \"version\": {},\n  \"name\": {},\n",
                                 machine_format, machine_version, quoted(machine.name));
  if (!machine.about.empty()) {
    text += "  \"about\": [";
    for (size_t i = 0; i < machine.about.size(); ++i)
      text += (i == 0 ? "\n    " : ",\n    ") + quoted(machine.about[i]);
    text += "\n  ],\n";
  }
  text += fmt::format("  \"nodes\": [\n    {}\n  ]", run_texts<Node>(machine.nodes, ",\n    ", node_text));
  if (machine.network.bandwidth.bytes_per_second > 0)
    text += fmt::format(",\n  \"network\": {{{}}}", link_text(machine.network));
  if (!machine.pairs.empty())
    text += ",\n  \"pairs\": " + pairs_text(machine.pairs, static_cast<size_t>(graph.devices()));
  const std::string calibration = calibration_text(machine.calibration);
  if (!calibration.empty()) text += fmt::format(",\n  \"calibration\": {{{}\n  }}", calibration);
  return text + "\n}\n";
}

}  // namespace cortado
