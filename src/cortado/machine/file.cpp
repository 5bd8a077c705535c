#include "cortado/machine/file.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "cortado/base/error.h"
#include "cortado/machine/file_keys.h"

namespace cortado {
namespace {

using Keys = std::string_view[];

constexpr int most_devices = 1 << 16;

constexpr std::string_view link_keys[] = {"latency_us", "bandwidth_gb_per_s"};
constexpr std::string_view latency_meaning = "microseconds that a message takes beside its bytes";
constexpr std::string_view bandwidth_meaning = "GB/s (1e9 bytes) in one direction";
constexpr std::string_view bus_meaning = "GB/s (1e9 bytes) that all messages within the node get together";
constexpr std::string_view host_meaning =
    "GB/s (1e9 bytes) that the node's devices get together to and from its memory";
constexpr std::string_view price_meaning = "the price of an hour, as in 2.48";
constexpr std::string_view nic_meaning = "GB/s (1e9 bytes) of the node's network interface in one direction";

Link link_of(const JsonObject& object) {
  return {{object.not_negative("latency_us", micro, latency_meaning)},
          {object.positive("bandwidth_gb_per_s", giga, bandwidth_meaning)}};
}

// Calls add(element, its path) for each element of a list.
template <typename Add>
void each_of(const JsonObject& parent, std::string_view key, std::string_view meaning, Add&& add) {
  const Json& list = parent.list(key, meaning);
  for (size_t i = 0; i < list.size(); ++i) add(list[i], fmt::format("{}[{}]", parent.path_of(key), i));
}

size_t devices_of(const Machine& machine) {
  size_t devices = 0;
  for (const Node& node : machine.nodes) devices += node.devices.size();
  return devices;
}

// Names are repeated for each of `count`.
std::string short_text(const JsonObject& object, std::string_view key, std::string_view meaning) {
  constexpr size_t longest = 100;
  std::string text = object.has(key) ? object.text(key, meaning) : "";
  if (text.size() > longest)
    object.refuse(key, fmt::format("has {} bytes; give {} of up to {}", text.size(), meaning, longest));
  return text;
}
std::string name_of(const JsonObject& object) { return short_text(object, "name", "a name"); }

int count_of(const JsonObject& object, int already) {
  if (!object.has("count")) return 1;
  const int count = object.whole("count", 1, most_devices, "how many there are of this");
  if (already + count > most_devices)
    object.refuse("count", fmt::format("{} makes more than {} of them; give fewer", count, most_devices));
  return count;
}

double price_of(const JsonObject& object) {
  return object.has("price_per_hour") ? object.positive("price_per_hour", plain, price_meaning) : 0;
}

// A number, or one for each type.
void read_peaks(const JsonObject& object, Device& device) {
  static constexpr Keys known = {"f32", "bf16"};
  constexpr std::string_view meaning = "the device's peak of float32 in GFLOP/s";
  if (!object.has("gflops") || !object.get("gflops", meaning).is_object()) {
    device.peak = {object.positive("gflops", giga, meaning)};
    return;
  }
  const JsonObject peaks = object.object("gflops", known, "an object with the peak of each type");
  device.peak = {peaks.positive("f32", giga, meaning)};
  device.bf16_peak = {peaks.positive("bf16", giga, "the device's peak of bfloat16 in GFLOP/s")};
}

void add_devices(const JsonObject& object, std::vector<Device>& devices) {
  Device device;
  device.name = name_of(object);
  read_peaks(object, device);
  device.memory_bandwidth = {object.positive("memory_bandwidth_gb_per_s", giga,
                                             "GB/s (1e9 bytes) between the device and its memory")};
  constexpr std::string_view memory_meaning = "the device's memory in GiB (2^30 bytes)";
  const double bytes = object.positive("memory_gib", gibi, memory_meaning);
  if (bytes < 0.5 || bytes > 0x1p53)
    object.refuse("memory_gib", fmt::format("{:g} is less than a byte or more than 2^53; give {}",
                                            bytes / 0x1p30, memory_meaning));
  device.memory = {std::llround(bytes)};
  if (object.has("task_overhead_us")) {
    device.task_overhead = {
        object.not_negative("task_overhead_us", micro, "microseconds that a task takes beside its work")};
  }
  device.instruction_set = short_text(object, "instruction_set", "a name as avx2");
  if (object.has("weight"))
    device.weight = object.positive("weight", plain, "the device's part of a layer, relative to others'");
  device.price_per_hour = price_of(object);
  devices.insert(devices.end(), static_cast<size_t>(count_of(object, static_cast<int>(devices.size()))),
                 device);
}

// Groups nest, and the last one holds all devices, so that every pair has exactly one innermost link.
std::vector<NodeLink> node_links(const JsonObject& node) {
  static constexpr Keys known = {"group", "latency_us", "bandwidth_gb_per_s"};
  std::vector<NodeLink> links;
  each_of(node, "links", "a list of links within the node", [&](const Json& value, const std::string& path) {
    const JsonObject object(value, node.file(), path, known);
    const int group = object.whole("group", 2, most_devices, "how many consecutive devices it joins");
    if (!links.empty() && (group <= links.back().group || group % links.back().group != 0)) {
      object.refuse("group", fmt::format("{} does not hold whole groups of the link before it; give a "
                                         "multiple of {} above it",
                                         group, links.back().group));
    }
    links.push_back({group, link_of(object)});
  });
  return links;
}

Node node_of(const JsonObject& object, bool with_pairs) {
  static constexpr Keys known = {"count",           "name",
                                 "gflops",          "memory_bandwidth_gb_per_s",
                                 "memory_gib",      "task_overhead_us",
                                 "instruction_set", "weight",
                                 "price_per_hour"};
  constexpr std::string_view devices_meaning = "a list of one device or more";
  Node node;
  node.name = name_of(object);
  if (object.has("sockets")) node.sockets = object.whole("sockets", 0, most_devices, "its sockets");
  if (object.has("cores")) node.cores = object.whole("cores", 0, most_devices, "its cores");
  each_of(object, "devices", devices_meaning, [&](const Json& value, const std::string& path) {
    add_devices(JsonObject(value, object.file(), path, known), node.devices);
  });
  const int devices = static_cast<int>(node.devices.size());
  if (devices == 0) object.refuse("devices", fmt::format("is empty; give {}", devices_meaning));
  if (with_pairs && object.has("links"))
    object.refuse("links", "stands beside \"pairs\"; give one of the two");
  if (object.has("links")) node.links = node_links(object);
  const int joined_devices = node.links.empty() ? 1 : node.links.back().group;
  if (!with_pairs && joined_devices < devices) {
    object.refuse("links", fmt::format("{} of {} devices; give a link with \"group\": {}",
                                       node.links.empty() ? "is missing for a node" : "does not join a node",
                                       devices, devices));
  }
  if (object.has("nic_bandwidth_gb_per_s")) {
    node.nic = {object.positive("nic_bandwidth_gb_per_s", giga, nic_meaning)};
  }
  if (object.has("bus_bandwidth_gb_per_s"))
    node.bus = {object.positive("bus_bandwidth_gb_per_s", giga, bus_meaning)};
  if (object.has("host_bandwidth_gb_per_s"))
    node.host = {object.positive("host_bandwidth_gb_per_s", giga, host_meaning)};
  node.price_per_hour = price_of(object);
  return node;
}

void read_nodes(const JsonObject& file, Machine& machine) {
  static constexpr Keys known = {"count",
                                 "name",
                                 "sockets",
                                 "cores",
                                 "devices",
                                 "links",
                                 "nic_bandwidth_gb_per_s",
                                 "bus_bandwidth_gb_per_s",
                                 "host_bandwidth_gb_per_s",
                                 "price_per_hour"};
  constexpr std::string_view meaning = "a list of one node or more";
  size_t devices = 0;
  std::string without_nic;  // the first such node
  each_of(file, "nodes", meaning, [&](const Json& value, const std::string& path) {
    const JsonObject object(value, file.file(), path, known);
    const Node node = node_of(object, file.has("pairs"));
    const int count = count_of(object, static_cast<int>(machine.nodes.size()));
    devices += static_cast<size_t>(count) * node.devices.size();
    if (devices > most_devices)
      object.refuse("devices", fmt::format("the machine has more than {}; give fewer", most_devices));
    machine.nodes.insert(machine.nodes.end(), static_cast<size_t>(count), node);
    if (node.nic.bytes_per_second == 0 && without_nic.empty()) without_nic = path;
  });
  if (machine.nodes.size() > 1 && !without_nic.empty()) {
    throw UserError(fmt::format("{}: {}.nic_bandwidth_gb_per_s: is missing for one of several nodes; give {}",
                                file.file(), without_nic, nic_meaning));
  }
  if (machine.nodes.empty()) file.refuse("nodes", fmt::format("is empty; give {}", meaning));
}

void read_network(const JsonObject& file, Machine& machine) {
  if (file.has("network") && file.has("pairs"))
    file.refuse("network", "stands beside \"pairs\"; give one of the two");
  if (!file.has("network") && !file.has("pairs") && machine.nodes.size() > 1) {
    file.refuse(
        "network",
        fmt::format("is missing for {} nodes; give latency_us and bandwidth_gb_per_s between two nodes",
                    machine.nodes.size()));
  }
  if (file.has("network")) machine.network = link_of(file.object("network", link_keys, "a link"));
}

// One matrix of "pairs": a row per sender, a column per receiver, 0 on the diagonal. Calls put(index, value).
template <typename Put>
void read_matrix(const JsonObject& pairs, std::string_view key, JsonUnit unit, std::string_view meaning,
                 bool zero, size_t devices, Put&& put) {
  const std::string shape = fmt::format("{0} rows of {0} numbers, one for each device", devices);
  const Json& rows = pairs.list(key, shape);
  if (rows.size() != devices)
    pairs.refuse(key, fmt::format("the number of rows is {}; give {}", rows.size(), shape));
  for (size_t from = 0; from < devices; ++from) {
    const std::string row_key = fmt::format("{}[{}]", key, from);
    if (!rows[from].is_array() || rows[from].size() != devices) {
      pairs.refuse(row_key,
                   fmt::format("{}; give {}",
                               rows[from].is_array() ? fmt::format("its length is {}", rows[from].size())
                                                     : shown(rows[from]) + " is not a list",
                               shape));
    }
    for (size_t to = 0; to < devices; ++to) {
      const std::string element = fmt::format("{}[{}]", row_key, to);
      const double value = pairs.number(rows[from][to], element, unit, meaning);
      if (from == to && value != 0)
        pairs.refuse(element, fmt::format("{} is a device's link to itself; give 0", shown(rows[from][to])));
      if (from != to && value == 0 && !zero)
        pairs.refuse(element, fmt::format("0 is not above 0; give {}", meaning));
      put(from * devices + to, value);
    }
  }
}

void read_pairs(const JsonObject& file, Machine& machine) {
  if (!file.has("pairs")) return;
  const JsonObject pairs = file.object("pairs", link_keys, "a matrix of latencies and one of bandwidths");
  const size_t devices = devices_of(machine);
  // Grown row by row: memory follows what the file holds.
  read_matrix(pairs, "latency_us", micro, latency_meaning, true, devices, [&](size_t, double value) {
    machine.pairs.push_back({{value}, {}});
  });
  read_matrix(pairs, "bandwidth_gb_per_s", giga, bandwidth_meaning, false, devices,
              [&](size_t pair, double value) { machine.pairs[pair].bandwidth = {value}; });
}

TaskFactors factors_of(const JsonObject& object, std::string_view meaning) {
  TaskFactors factors;
  for (int kind = 0; kind < task_kinds; ++kind) {
    if (!object.has(kind_keys[kind])) continue;
    const JsonObject passes = object.object(kind_keys[kind], pass_keys, "a number for each pass");
    for (int pass = 0; pass < task_passes; ++pass) {
      if (!passes.has(pass_keys[pass])) continue;
      factors.at(static_cast<TaskKind>(kind), static_cast<TaskPass>(pass)) =
          passes.positive(pass_keys[pass], plain, meaning);
    }
  }
  return factors;
}

MessageOverhead overhead_of(const JsonObject& calibration) {
  static constexpr Keys known = {"node_us_per_mb", "network_us_per_mb"};
  constexpr std::string_view meaning =
      "the microseconds of computing that 1e6 bytes sent or received meanwhile cost a device";
  const JsonObject object =
      calibration.object("message_overhead", known, "an object with what messages cost");
  MessageOverhead overhead;
  if (object.has(known[0])) overhead.node = object.not_negative(known[0], micro_per_mega, meaning);
  if (object.has(known[1])) overhead.network = object.not_negative(known[1], micro_per_mega, meaning);
  return overhead;
}

void read_collectives(const JsonObject& object, size_t devices, std::vector<CollectiveTime>& times) {
  static constexpr Keys known = {"devices", "bytes", "time_us"};
  each_of(object, "allreduce", "a list of measured sums", [&](const Json& value, const std::string& path) {
    const JsonObject one(value, object.file(), path, known);
    CollectiveTime time;
    time.devices = one.whole("devices", 2, most_devices, "how many devices took part");
    if (static_cast<size_t>(time.devices) > devices) {
      one.refuse("devices", fmt::format("{} took part, but the machine has {}; leave this out or add devices",
                                        time.devices, devices));
    }
    const double bytes = one.positive("bytes", plain, "the bytes that each device had");
    if (bytes != std::floor(bytes) || bytes > 0x1p53)
      one.refuse(
          "bytes",
          fmt::format("{} is not a whole number up to 2^53; give the bytes that each device had", bytes));
    time.bytes = {static_cast<int64_t>(bytes)};
    time.time = {one.positive("time_us", micro, "the microseconds that it took")};
    times.push_back(time);
  });
}

void read_calibration(const JsonObject& file, Machine& machine) {
  static constexpr Keys known = {
      "efficiency",   "correction", "exchange_correction", "collective_correction", "message_overhead",
      "busy_link_us", "allreduce"};
  if (!file.has("calibration")) return;
  const JsonObject object = file.object("calibration", known, "an object");
  Calibration& calibration = machine.calibration;
  constexpr std::string_view ratio = "measured over predicted seconds";
  if (object.has("efficiency")) {
    calibration.efficiency =
        factors_of(object.object("efficiency", kind_keys, "an object with a kind of task"),
                   "the share of the device's limit that is reached, as in 0.7");
  }
  if (object.has("correction")) {
    calibration.correction =
        factors_of(object.object("correction", kind_keys, "an object with a kind of task"), ratio);
  }
  if (object.has("exchange_correction"))
    calibration.exchange_correction = object.positive("exchange_correction", plain, ratio);
  if (object.has("collective_correction"))
    calibration.collective_correction = object.positive("collective_correction", plain, ratio);
  if (object.has("message_overhead")) calibration.message_overhead = overhead_of(object);
  if (object.has("busy_link_us"))
    calibration.busy_link = {object.not_negative(
        "busy_link_us", micro, "the microseconds that a message waits while a sum uses its link")};
  const size_t devices = devices_of(machine);
  if (object.has("allreduce")) read_collectives(object, devices, calibration.allreduce);
}

}  // namespace

DeviceGraph parse_machine(const std::string& json, const std::string& where) {
  static constexpr Keys known = {"format", "version", "name",  "about",
                                 "nodes",  "network", "pairs", "calibration"};
  const Json parsed = parse_json(json, where);
  check_format(parsed, where, "machine", machine_format, machine_version);
  const JsonObject file(parsed, where, "", known);
  Machine machine;
  machine.name = file.text("name", "the machine's name");
  if (file.has("about")) {
    each_of(file, "about", "a list of texts", [&](const Json& value, const std::string& path) {
      if (!value.is_string())
        throw UserError(
            fmt::format("{}: {}: {} is not a text; put notes in quotes", where, path, shown(value)));
      machine.about.push_back(value.get<std::string>());
    });
  }
  read_nodes(file, machine);
  read_network(file, machine);
  read_pairs(file, machine);
  read_calibration(file, machine);
  return DeviceGraph(std::move(machine));
}

}  // namespace cortado
