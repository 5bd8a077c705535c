#include "cortado/machine/link_class.h"

#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/machine/file.h"

namespace cortado {
namespace {

DeviceGraph ready(const std::string& name, int devices) {
  return load_machine(CORTADO_SOURCE_DIR "/machines/" + name + ".json").first(devices);
}

std::vector<std::string> names_of(const DeviceGraph& machine) {
  std::vector<std::string> names;
  for (const LinkClass& one : link_classes(machine)) names.push_back(one.name);
  return names;
}

TEST(LinkClasses, AreThoseThatDevicesUse) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of(ready("lassen", 2048)), (Names{"network", "group-4", "group-2"}));
  EXPECT_EQ(names_of(ready("lassen", 4)), (Names{"group-4", "group-2"}));
  EXPECT_EQ(names_of(ready("lassen", 2)), (Names{"group-2"}));
  EXPECT_EQ(names_of(ready("lassen", 1)), Names{});
  EXPECT_EQ(slowest_links(ready("lassen", 2048)), (LinkClass{"network", {12e9}}));
  EXPECT_EQ(find_links(ready("lassen", 8), "group-2", "here").bandwidth, Bandwidth{70e9});
  EXPECT_THROW(slowest_links(ready("lassen", 1)), UserError);
  try {
    find_links(ready("lassen", 8), "group-3", "sweep link=group-3:1");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(
        error.what(),
        "sweep link=group-3:1: machine 'lassen' has no links 'group-3'; give one of network, group-4, "
        "group-2");
  }
}

TEST(LinkClasses, FasterOnesChangeTheirPairsAlone) {
  const DeviceGraph machine = ready("lassen", 16);
  const std::pair<std::string, std::pair<int, int>> pairs[] = {
      {"network", {3, 4}}, {"group-4", {1, 2}}, {"group-2", {6, 7}}};
  for (const auto& [name, of_class] : pairs) {
    const DeviceGraph faster = with_faster_links(machine, name, 2);
    for (const auto& [other, pair] : pairs) {
      const Link before = machine.link(pair.first, pair.second), after = faster.link(pair.first, pair.second);
      EXPECT_EQ(after.latency, before.latency);
      EXPECT_EQ(after.bandwidth.bytes_per_second, (name == other ? 2 : 1) * before.bandwidth.bytes_per_second)
          << name << " " << other;
    }
    EXPECT_EQ(faster.nic(0).bytes_per_second, (name == "network" ? 2 : 1) * machine.nic(0).bytes_per_second);
  }
}

TEST(LinkClasses, OfPairsAreWithinAndBetweenNodes) {
  const Device device{.peak = {1}, .memory_bandwidth = {1}, .memory = {1}};
  const Node node{.devices = {device, device}, .nic = {100}, .bus = {50}};
  std::vector<Link> pairs;
  for (int from = 0; from < 4; ++from)
    for (int to = 0; to < 4; ++to) pairs.push_back({{1}, {from / 2 == to / 2 ? 10.0 + from : 2.0 + to}});
  const DeviceGraph machine({.name = "m", .nodes = {node, node}, .pairs = pairs});
  EXPECT_EQ(link_classes(machine), (std::vector<LinkClass>{{"network", {2}}, {"node", {10}}, {"bus", {50}}}));
  const DeviceGraph faster = with_faster_links(machine, "network", 3);
  EXPECT_EQ(faster.link(0, 1), machine.link(0, 1));
  EXPECT_EQ(faster.link(3, 1).bandwidth, Bandwidth{9});
  EXPECT_EQ(faster.nic(1), Bandwidth{300});
  EXPECT_EQ(with_faster_links(machine, "bus", 2).bus(0), Bandwidth{100});
}

}  // namespace
}  // namespace cortado
