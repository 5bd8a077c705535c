#include "cortado/machine/file.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <random>
#include <string>

#include "cortado/base/error.h"
#include "cortado/base/file.h"

namespace cortado {
namespace {

const std::string device = R"({"gflops": 1000, "memory_bandwidth_gb_per_s": 100, "memory_gib": 16})";

std::string file(const std::string& rest) {
  return R"({"format": "cortado-machine", "version": 1, "name": "m", )" + rest + "}";
}
std::string one_node(const std::string& devices, const std::string& more = "") {
  return file(R"("nodes": [{"devices": [)" + devices + "]" + more + "}]");
}
std::string two_devices(const std::string& more) {
  return file(R"("nodes": [{"devices": [)" + device + ", " + device + "]}], " + more);
}
std::string with_calibration(const std::string& calibration) {
  return file(R"("nodes": [{"devices": [)" + device + R"(]}], "calibration": {)" + calibration + "}");
}

std::string refusal(const std::string& json) {
  try {
    parse_machine(json, "m.json");
    return "nothing";
  } catch (const UserError& error) {
    return error.what();
  }
}

// 1e-6 seconds are 0.99999999999999995 us.
TEST(MachineFile, WritesWholeNumbersThatAreNoWholeBinaryOnes) {
  for (int us = 1; us <= 100; ++us) {
    Node node;
    node.devices = {Device{.name = "",
                           .peak = {1e11},
                           .memory_bandwidth = {1e10},
                           .memory = {int64_t{1} << 30},
                           .task_overhead = {us * 1e-6}}};
    Machine machine;
    machine.name = "m";
    machine.nodes = {node};
    const std::string text = machine_text(DeviceGraph(machine));
    EXPECT_EQ(refusal(text), "nothing") << text;
    EXPECT_EQ(parse_machine(text, "m.json").device(0).task_overhead, Seconds{us * 1e-6});
  }
}

TEST(MachineFile, WeightsComeBack) {
  Node node;
  node.devices = {
      Device{.peak = {1e11}, .memory_bandwidth = {1e10}, .memory = {int64_t{1} << 30}, .weight = 0.3}};
  const Machine machine{.name = "m", .nodes = {node}};
  EXPECT_EQ(parse_machine(machine_text(DeviceGraph(machine)), "m.json").device(0).weight, 0.3);
}

TEST(MachineFile, PricesComeBack) {
  const std::string cheap =
      R"({"count": 3, "gflops": 1, "memory_bandwidth_gb_per_s": 1, "memory_gib": 1, "price_per_hour": 0.1})";
  const std::string rest = R"(, "links": [{"group": 4, "latency_us": 1, "bandwidth_gb_per_s": 1}],
      "price_per_hour": 2.5)";
  const DeviceGraph graph = parse_machine(one_node(cheap + ", " + device, rest), "m.json");
  EXPECT_EQ(graph.device(0).price_per_hour, 0.1);
  EXPECT_EQ(graph.device(3).price_per_hour, 0);
  EXPECT_EQ(graph.node(0).price_per_hour, 2.5);
  EXPECT_DOUBLE_EQ(graph.price_per_hour(), 2.8);
  EXPECT_DOUBLE_EQ(graph.first(1).price_per_hour(), 2.6);  // a node is paid for as a whole
  EXPECT_EQ(parse_machine(machine_text(graph), "text"), graph);
  EXPECT_EQ(parse_machine(one_node(device), "m.json").price_per_hour(), 0);
  EXPECT_EQ(refusal(one_node(device, R"(, "price_per_hour": 0)")),
            "m.json: nodes[0].price_per_hour: 0 is not above 0; give the price of an hour, as in 2.48");
  EXPECT_EQ(
      refusal(one_node(
          R"({"gflops": 1, "memory_bandwidth_gb_per_s": 1, "memory_gib": 1, "price_per_hour": "2"})")),
      "m.json: nodes[0].devices[0].price_per_hour: \"2\" is not a number; give the price of an hour, as "
      "in 2.48");
}

TEST(MachineFile, RatesOfBothTypesComeBack) {
  const auto read = [](const std::string& gflops) {
    return parse_machine(
        one_node(R"({"gflops": )" + gflops + R"(, "memory_bandwidth_gb_per_s": 1, "memory_gib": 1})"),
        "m.json");
  };
  const DeviceGraph both = read(R"({"f32": 1.5, "bf16": 2.5})"), one = read("1.5");
  EXPECT_EQ(both.device(0).peak_of(ElementType::f32), FlopRate{1.5e9});
  EXPECT_EQ(both.device(0).peak_of(ElementType::bf16), FlopRate{2.5e9});
  EXPECT_EQ(one.device(0).peak_of(ElementType::bf16), FlopRate{1.5e9});
  EXPECT_NE(both, one);
  EXPECT_EQ(parse_machine(machine_text(both), "text"), both);
  EXPECT_EQ(refusal(one_node(R"({"gflops": {"f32": 1, "bf16": 0}})")),
            "m.json: nodes[0].devices[0].gflops.bf16: 0 is not above 0; give the device's peak of bfloat16 "
            "in GFLOP/s");
  EXPECT_NE(refusal(one_node(R"({"gflops": {"bf16": 1}})")).find("gflops.f32"), std::string::npos);
  EXPECT_NE(refusal(one_node(R"({"gflops": {"f32": 1, "fp16": 1}})")).find("no key \"fp16\""),
            std::string::npos);
}

TEST(MachineFile, ReadyMachinesAreReadAndComeBackTheSame) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(CORTADO_SOURCE_DIR "/machines")) {
    const std::string path = entry.path().string();
    const DeviceGraph graph = load_machine(path);
    EXPECT_EQ(graph.machine().name, entry.path().stem().string()) << path;
    EXPECT_FALSE(graph.machine().about.empty()) << path;
    EXPECT_EQ(parse_machine(machine_text(graph), "text"), graph) << path;
    ++files;
  }
  EXPECT_EQ(files, 8);
}

TEST(MachineFile, ReadyMachinesAreWhatThePapersTell) {
  const std::string folder = CORTADO_SOURCE_DIR "/machines/";
  EXPECT_EQ(load_machine(folder + "deepa-k80.json").devices(), 16);
  EXPECT_EQ(load_machine(folder + "deepa-k80.json").nodes(), 1);
  EXPECT_EQ(load_machine(folder + "cori-phase-1.json").nodes(), 128);
  const DeviceGraph p100 = load_machine(folder + "layer-wise-p100.json");
  EXPECT_EQ(p100.devices(), 16);
  EXPECT_EQ(p100.nodes(), 4);
  EXPECT_EQ(p100.link(0, 3), (Link{{8e-6}, {18e9}}));
  const DeviceGraph lassen = load_machine(folder + "lassen.json");
  EXPECT_EQ(lassen.devices(), 2048);
  EXPECT_GT(lassen.link(0, 1).bandwidth, lassen.link(1, 2).bandwidth);  // NVLink2 ends at the socket
  EXPECT_EQ(lassen.nic(7).bytes_per_second, 2 * lassen.link(0, 4).bandwidth.bytes_per_second);
}

TEST(MachineFile, UnitsAreThoseOfTheKeys) {
  const DeviceGraph graph = parse_machine(
      file(
          R"("about": ["a", "b"], "nodes": [{"count": 2, "name": "n", "sockets": 2, "cores": 8, "devices": [)"
          R"({"count": 2, "name": "d", "gflops": 1.5, "memory_bandwidth_gb_per_s": 2, "memory_gib": 0.5, )"
          R"("task_overhead_us": 7, "instruction_set": "avx2"}], "links": [{"group": 2, "latency_us": 0, "bandwidth_gb_per_s": 3}], )"
          R"("nic_bandwidth_gb_per_s": 4, "bus_bandwidth_gb_per_s": 6, "host_bandwidth_gb_per_s": 0.5}], "network": {"latency_us": 5, "bandwidth_gb_per_s": 0.125}, )"
          R"("calibration": {"efficiency": {"memory": {"backward": 0.25}}, "exchange_correction": 2, )"
          R"("message_overhead": {"network_us_per_mb": 250}, "busy_link_us": 40, )"
          R"("allreduce": [{"devices": 4, "bytes": 4096, "time_us": 6}]})"),
      "m.json");
  const Device expected{"d", {1.5e9}, {2e9}, {int64_t{1} << 29}, {7e-6}, "avx2"};
  EXPECT_EQ(graph.devices(), 4);
  EXPECT_EQ(graph.device(3), expected);
  EXPECT_EQ(graph.link(2, 3), (Link{{0}, {3e9}}));
  EXPECT_EQ(graph.link(1, 2), (Link{{5e-6}, {0.125e9}}));
  EXPECT_EQ(graph.nic(1).bytes_per_second, 4e9);
  EXPECT_EQ(graph.bus(1).bytes_per_second, 6e9);
  EXPECT_EQ(graph.host(1).bytes_per_second, 0.5e9);
  EXPECT_EQ(graph.node(1).cores, 8);
  EXPECT_EQ(graph.calibration().efficiency.at(TaskKind::memory, TaskPass::backward), 0.25);
  EXPECT_EQ(graph.calibration().efficiency.at(TaskKind::memory, TaskPass::forward), 1);
  EXPECT_EQ(graph.calibration().exchange_correction, 2);
  EXPECT_EQ(graph.calibration().message_overhead, (MessageOverhead{.node = 0, .network = 2.5e-10}));
  EXPECT_EQ(graph.calibration().busy_link, Seconds{4e-5});
  EXPECT_EQ(graph.calibration().allreduce, (std::vector<CollectiveTime>{{4, {4096}, {6e-6}}}));
}

// Numbers of all magnitudes and with all of their digits come back bit for bit.
class RandomMachine {
 public:
  explicit RandomMachine(uint32_t seed) : random_(seed) {}

  DeviceGraph make() {
    Machine machine{.name = "random \"quoted\"\n\u00b5", .about = {"one", ""}};
    const bool pairs = below(2) == 0;
    for (int n = 1 + below(4); n > 0; --n) machine.nodes.push_back(node(pairs));
    if (below(2) == 0) machine.nodes.push_back(machine.nodes.back());
    size_t devices = 0;
    for (const Node& node : machine.nodes) devices += node.devices.size();
    if (pairs) {
      for (size_t i = 0; i < devices * devices; ++i)
        machine.pairs.push_back(link());  // also where a device meets itself
    } else {
      machine.network = link();
    }
    Calibration& calibration = machine.calibration;
    for (TaskFactors* factors : {&calibration.efficiency, &calibration.correction}) {
      for (auto& kind : factors->values)
        for (double& value : kind) value = number();
    }
    calibration.exchange_correction = number();
    calibration.collective_correction = number();
    calibration.message_overhead = {number(), number()};
    calibration.busy_link = {number()};
    if (devices > 1) calibration.allreduce = {{2, {below(1 << 30) + 1}, {number()}}};
    return DeviceGraph(machine);
  }

 private:
  Node node(bool pairs) {
    Node node{
        .name = below(2) == 0 ? "" : "node", .sockets = below(3), .cores = below(65), .nic = {number()}};
    if (below(2) == 0) node.bus = {number()};
    if (below(2) == 0) node.host = {number()};
    if (below(2) == 0) node.price_per_hour = number();
    for (int d = 1 + below(4); d > 0; --d) {
      node.devices.push_back(
          {"", {number()}, {number()}, {int64_t{1} + below(1 << 30) * int64_t{977}}, {number()}});
      if (below(2) == 0) node.devices.back().weight = number();
      if (below(2) == 0) node.devices.back().price_per_hour = number();
      if (below(2) == 0) node.devices.push_back(node.devices.back());
    }
    if (!pairs) node.links = {{2, link()}, {8, link()}};
    return node;
  }
  Link link() { return {{number()}, {number()}}; }
  double number() { return std::ldexp(std::uniform_real_distribution<>(0.5, 1)(random_), below(120) - 60); }
  int below(int end) { return std::uniform_int_distribution<>(0, end - 1)(random_); }

  std::mt19937 random_;
};

TEST(MachineFile, AnyNumbersComeBackTheSame) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const DeviceGraph graph = RandomMachine(seed).make();
    const std::string text = machine_text(graph);
    ASSERT_EQ(parse_machine(text, "text"), graph) << seed << "\n" << text;
  }
}

TEST(MachineFile, EqualNeighboursAreWrittenOnce) {
  const DeviceGraph lassen = load_machine(CORTADO_SOURCE_DIR "/machines/lassen.json");
  const std::string text = machine_text(lassen);
  EXPECT_NE(text.find("\"count\": 512"), std::string::npos) << text;
  EXPECT_NE(text.find("\"latency_us\": 5, \"bandwidth_gb_per_s\": 70"), std::string::npos) << text;
  const std::string part = machine_text(lassen.first(6));  // a whole node and half of one
  EXPECT_EQ(parse_machine(part, "text"), lassen.first(6)) << part;
}

TEST(MachineFile, RefusesWithFileKeyValueAndRemedy) {
  struct Case {
    std::string json, message;
  };
  const std::string link = R"({"group": 2, "latency_us": 1, "bandwidth_gb_per_s": 1})";
  const Case cases[] = {
      {R"({"format": "cortado-strategy"})", "is not a machine file: \"format\" must be \"cortado-machine\""},
      {R"([1])", "is not a machine file: \"format\" must be \"cortado-machine\""},
      {R"({"format": "cortado-machine", "version": 2})", "version: 2 is not supported, this program reads 1"},
      {file(R"("nodes": [], "netwrok": {})"),
       "there is no key \"netwrok\"; did you mean 'network'? (known: format, version, name, about, nodes, "
       "network, pairs, calibration)"},
      {R"({"format": "cortado-machine", "version": 1})", "name: is missing; give the machine's name"},
      {file(R"("about": ["a", 7], "nodes": [])"), "about[1]: 7 is not a text; put notes in quotes"},
      {file(R"("nodes": [])"), "nodes: is empty; give a list of one node or more"},
      {one_node(""), "nodes[0].devices: is empty; give a list of one device or more"},
      {one_node("3"),
       "nodes[0].devices[0]: 3 is not an object; its keys are count, name, gflops, "
       "memory_bandwidth_gb_per_s, memory_gib, task_overhead_us, instruction_set, weight, price_per_hour"},
      {one_node(R"({"gflop": 1})"),
       "nodes[0].devices[0]: there is no key \"gflop\"; did you mean 'gflops'? (known: count, name, gflops, "
       "memory_bandwidth_gb_per_s, memory_gib, task_overhead_us, instruction_set, weight, price_per_hour)"},
      {one_node(R"({"gflops": -4.5})"),
       "nodes[0].devices[0].gflops: -4.5 is negative; give the device's peak of float32 in GFLOP/s"},
      {one_node(R"({"gflops": 0})"),
       "nodes[0].devices[0].gflops: 0 is not above 0; give the device's peak of float32 in GFLOP/s"},
      {one_node(R"({"gflops": 1e300})"),
       "nodes[0].devices[0].gflops: 1e+300 is too large; give the device's peak of float32 in GFLOP/s"},
      {one_node(R"({"gflops": "4 T"})"),
       "nodes[0].devices[0].gflops: \"4 T\" is not a number; give the device's peak of float32 in GFLOP/s"},
      {one_node(R"({"gflops": 1})"),
       "nodes[0].devices[0].memory_bandwidth_gb_per_s: is missing; give GB/s (1e9 bytes) between the device "
       "and its memory"},
      {one_node(R"({"gflops": 1, "memory_bandwidth_gb_per_s": 1, "memory_gib": 1e-12})"),
       "nodes[0].devices[0].memory_gib: 1e-12 is less than a byte or more than 2^53; give the device's "
       "memory "
       "in GiB (2^30 bytes)"},
      {one_node(device, R"(, "count": 0)"),
       "nodes[0].count: 0 is not a whole number from 1 to 65536; give how many there are of this"},
      {one_node(device, R"(, "name": ")" + std::string(101, 'n') + "\""),
       "nodes[0].name: has 101 bytes; give a name of up to 100"},
      {one_node(device + ", " + device),
       "nodes[0].links: is missing for a node of 2 devices; give a link with \"group\": 2"},
      {one_node(device + ", " + device + ", " + device, R"(, "links": [)" + link + "]"),
       "nodes[0].links: does not join a node of 3 devices; give a link with \"group\": 3"},
      {one_node(device, R"(, "links": [)" + link + R"(, {"group": 3}])"),
       "nodes[0].links[1].group: 3 does not hold whole groups of the link before it; give a multiple of 2 "
       "above it"},
      {file(R"("nodes": [{"count": 2, "devices": [)" + device + "]}]"),
       "nodes[0].nic_bandwidth_gb_per_s: is missing for one of several nodes; give GB/s (1e9 bytes) of the "
       "node's network interface in one direction"},
      {file(R"("nodes": [{"count": 2, "devices": [)" + device + R"(], "nic_bandwidth_gb_per_s": 1}])"),
       "network: is missing for 2 nodes; give latency_us and bandwidth_gb_per_s between two nodes"},
      {file(R"("nodes": [{"count": 3, "devices": [{"count": 30000, )" + device.substr(1) + "]}]"),
       "nodes[0].links: is missing for a node of 30000 devices; give a link with \"group\": 30000"},
      {file(R"("nodes": [{"count": 3, "devices": [{"count": 30000, )" + device.substr(1) +
            R"(], "links": [{"group": 30000, "latency_us": 1, "bandwidth_gb_per_s": 1}]}])"),
       "nodes[0].devices: the machine has more than 65536; give fewer"},
      {two_devices(R"("network": {"latency_us": 1, "bandwidth_gb_per_s": 1}, "pairs": {})"),
       "network: stands beside \"pairs\"; give one of the two"},
      {two_devices(R"("pairs": {"latency_us": [[0, 1]]})"),
       "pairs.latency_us: the number of rows is 1; give 2 rows of 2 numbers, one for each device"},
      {two_devices(R"("pairs": {"latency_us": [[0, 1], [1]]})"),
       "pairs.latency_us[1]: its length is 1; give 2 rows of 2 numbers, one for each device"},
      {two_devices(R"("pairs": {"latency_us": [[0, 1], [1, 2]]})"),
       "pairs.latency_us[1][1]: 2 is a device's link to itself; give 0"},
      {two_devices(R"("pairs": {"latency_us": [[0, -1], [1, 2]]})"),
       "pairs.latency_us[0][1]: -1 is negative; give microseconds that a message takes beside its bytes"},
      {two_devices(R"("pairs": {"latency_us": [[0, 0], [1, 0]], "bandwidth_gb_per_s": [[0, 1], [0, 0]]})"),
       "pairs.bandwidth_gb_per_s[1][0]: 0 is not above 0; give GB/s (1e9 bytes) in one direction"},
      {with_calibration(R"("efficiency": {"convolution": {"foward": 1}})"),
       "calibration.efficiency.convolution: there is no key \"foward\"; did you mean 'forward'? (known: "
       "forward, backward_weights, backward)"},
      {with_calibration(R"("efficiency": {"memory": {"forward": 0}})"),
       "calibration.efficiency.memory.forward: 0 is not above 0; give the share of the device's limit that "
       "is "
       "reached, as in 0.7"},
      {with_calibration(R"("message_overhead": {"node_us_per_mb": -1})"),
       "calibration.message_overhead.node_us_per_mb: -1 is negative; give the microseconds of computing that "
       "1e6 bytes sent or received meanwhile cost a device"},
      {with_calibration(R"("busy_link_us": -2)"),
       "calibration.busy_link_us: -2 is negative; give the microseconds that a message waits while a sum "
       "uses "
       "its link"},
      {with_calibration(R"("allreduce": [{"devices": 2, "bytes": 4, "time_us": 1}])"),
       "calibration.allreduce[0].devices: 2 took part, but the machine has 1; leave this out or add devices"},
  };
  for (const Case& c : cases) EXPECT_EQ(refusal(c.json), "m.json: " + c.message) << c.json;
}

TEST(MachineFile, RefusesWhatIsNotJson) {
  EXPECT_EQ(refusal("{\"format\": ").substr(0, 20), "m.json: is not JSON:");
  // Values that nest deeply are told without going into them.
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
  EXPECT_EQ(
      refusal(one_node(R"({"gflops": )" + deep + "}")),
      "m.json: nodes[0].devices[0].gflops: a list is not a number; give the device's peak of float32 in "
      "GFLOP/s");
  EXPECT_EQ(refusal(R"({"format": "cortado-machine", "version": )" + deep + "}"),
            "m.json: version: a list is not supported, this program reads 1");
}

TEST(MachineFile, ReadyMachinesAreFoundByName) {
  // The program of this test lies below the sources, which have the folder.
  std::filesystem::current_path(CORTADO_SOURCE_DIR);
  EXPECT_EQ(load_machine("lassen").machine().name, "lassen");
  const std::vector<std::string> names = ready_machines();
  EXPECT_NE(std::ranges::find(names, "workstations-1gbe"), names.end());
  try {
    load_machine("lasen");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()),
              "there is no machine 'lasen'; did you mean 'lassen'? (known: cori-phase-1, deepa-k80, "
              "deepa-tables, lassen, layer-wise-p100, layer-wise-sizes, workstations-10gbe, "
              "workstations-1gbe, or a file that ends in .json)");
  }
  EXPECT_THROW(load_machine("no/such.json"), UserError);
}

}  // namespace
}  // namespace cortado
