#include "cortado/plan/sweep.h"

#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/cost/analytic.h"

#include "tests/plan/zoo.h"

namespace cortado::plan {
namespace {

using testing::ready_machine;
using testing::zoo_net;

std::string refusal(const std::vector<std::string>& texts) {
  try {
    sweep_axes(texts, ready_machine("lassen", 64), 32);
    return "nothing";
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(SweepAxes, AreWhatTheTextsSay) {
  const DeviceGraph machine = ready_machine("lassen", 64);
  SweepAxes axes = sweep_axes({"devices=4..64", "batch=256,32/device", "link=24,6.5"}, machine, 32);
  EXPECT_EQ(axes.devices, (std::vector<int>{4, 8, 16, 32, 64}));
  EXPECT_EQ(axes.batches, (std::vector<SweepBatch>{{256, false}, {32, true}}));
  EXPECT_EQ(axes.batches[1].on(8), 256);
  EXPECT_EQ(axes.batches[1].text(), "32/device");
  EXPECT_EQ(axes.link, "network");
  EXPECT_EQ(axes.bandwidths, (std::vector<Bandwidth>{{6.5e9}, {24e9}}));
  axes = sweep_axes({"link=group-2:150", "devices=12,3..10"}, machine, 32);
  EXPECT_EQ(axes.link, "group-2");
  EXPECT_EQ(axes.devices, (std::vector<int>{3, 6, 12}));
  EXPECT_EQ(axes.batches, (std::vector<SweepBatch>{{32, false}}));
  EXPECT_EQ(sweep_axes({"batch=8"}, machine, 32).devices, std::vector<int>{64});
}

TEST(SweepAxes, RefuseWithTextAndRemedy) {
  EXPECT_EQ(refusal({"devices=4..128"}),
            "sweep devices=4..128: '128' is not a number of devices of machine 'lassen'; give 1 to 64");
  for (const char* part : {"0", "-4", "4..x", "4.5", "..4"})
    EXPECT_NE(refusal({std::string("devices=") + part}).find("is not a number of devices"), std::string::npos)
        << part;
  EXPECT_EQ(refusal({"devices=8..4"}), "sweep devices=8..4: 4 is below 8; give a range upwards");
  EXPECT_EQ(refusal({"devices=4,4"}), "sweep devices=4,4: '4' is there twice; leave one out");
  EXPECT_EQ(refusal({"devices=4", "devices=8"}),
            "sweep devices=8: is given twice; give each axis once, with all of its values");
  for (const char* part : {"0", "1/gpu", "-1", "x/device", "/device", "1e3", "99999999999999999999"})
    EXPECT_NE(refusal({std::string("batch=") + part}).find("is not a batch"), std::string::npos) << part;
  for (const char* part : {"0", "-1", "nan", "inf", "fast", "network:x"})
    EXPECT_NE(refusal({std::string("link=") + part}).find("is not a bandwidth"), std::string::npos) << part;
  EXPECT_NE(refusal({"link=ether:1"}).find("has no links 'ether'; give one of network"), std::string::npos);
  EXPECT_EQ(refusal({"nodes=4"}),
            "sweep nodes=4: there is no axis 'nodes'; give devices=4..64, batch=256,32/device or link=12,25");
  for (const char* text : {"devices", "devices=", "batch=,", "link=network:", ""})
    EXPECT_NE(refusal({text}), "nothing") << text;
}

// A sweep of AlexNet on 1 to 4 P100 of 4 devices a node.
class SweepOfAlexnet : public ::testing::Test {
 protected:
  static Network alexnet(int64_t batch) { return zoo_net("alexnet", batch, {3, 227, 227}); }

  Sweep swept(const std::vector<std::string>& axes, const DeviceGraph& machine,
              const SweepOptions& options = {}, Bytes memory = {}) {
    const Network network = alexnet(64);
    const PlanRequest request{.network = network,
                              .batch = 64,
                              .with_batch = alexnet,
                              .options = {.memory = memory.count > 0 ? memory : machine.least_memory()}};
    return sweep(request, machine, sweep_axes(axes, machine, 64), options);
  }

  static Plan planned(const DeviceGraph& machine, int64_t batch, Bytes memory = {}) {
    AnalyticCosts costs(machine);
    return make_plan(alexnet(batch), pricing_for(machine), costs, machine.node_of_devices(),
                     {.memory = memory});
  }

  const DeviceGraph machine_ = ready_machine("layer-wise-p100", 8);
};

TEST_F(SweepOfAlexnet, PointsArePlansOnPartsOfTheMachine) {
  const Sweep found = swept({"devices=1..8", "batch=64,16/device"}, machine_);
  ASSERT_EQ(found.points.size(), 8u);
  for (const SweepPoint& point : found.points) {
    const DeviceGraph part = machine_.first(point.devices);
    const Plan plan = planned(part, point.batch.per_device ? 16 * point.devices : 64);
    EXPECT_NEAR(point.seconds().count, plan.seconds.count, 1e-9 * plan.seconds.count);
    EXPECT_EQ(point.memory, plan.memory);
    EXPECT_FALSE(point.simulated);
    ASSERT_EQ(point.gains.size(), link_classes(part).size());
    for (const LinkGain& gain : point.gains) {
      const Plan faster = planned(with_faster_links(part, gain.links.name, 2), point.samples);
      EXPECT_NEAR(gain.seconds.count, faster.seconds.count, 1e-9 * faster.seconds.count);
      EXPECT_LE(gain.seconds.count, point.seconds().count * (1 + 1e-9));
    }
    const SweepPoint& first = found.points[point.batch.per_device ? 4 : 0];
    EXPECT_DOUBLE_EQ(point.efficiency,
                     point.images_per_second() / point.devices / first.images_per_second() * first.devices);
    EXPECT_EQ(point.price_per_hour, 0);
  }
  EXPECT_EQ(found.smallest.size(), 2u);
  EXPECT_EQ(found.smallest[0].devices, 1);
  EXPECT_EQ(cheapest(found), nullptr);
}

TEST_F(SweepOfAlexnet, LinksVary) {
  const Sweep found = swept({"devices=8", "link=network:12,48"}, machine_);
  ASSERT_EQ(found.points.size(), 2u);
  const double own = find_links(machine_, "network", "").bandwidth.bytes_per_second;
  for (size_t i = 0; i < 2; ++i) {
    const double asked = i == 0 ? 12e9 : 48e9;
    EXPECT_EQ(found.points[i].bandwidth, Bandwidth{asked});
    const Plan plan = planned(with_faster_links(machine_, "network", asked / own), 64);
    EXPECT_NEAR(found.points[i].seconds().count, plan.seconds.count, 1e-9 * plan.seconds.count);
  }
  EXPECT_GT(found.points[0].seconds(), found.points[1].seconds());
}

TEST_F(SweepOfAlexnet, IsSimulatedUpToALimit) {
  const SweepJudge judge = [](const Network&, const DeviceGraph& part, const Strategy& strategy) {
    EXPECT_EQ(strategy.ranks, part.devices());
    return SweepParts{{1}, {2}, {4.0 * part.devices()}};
  };
  const Sweep found = swept({"devices=2..8"}, machine_, {.judge = judge, .most_simulated = 4});
  EXPECT_TRUE(found.points[0].simulated && found.points[1].simulated && !found.points[2].simulated);
  EXPECT_EQ(found.points[1].seconds(), Seconds{19});
  EXPECT_EQ(found.points[1].bound(), SweepBound::sync);
}

TEST_F(SweepOfAlexnet, WhatDoesNotFitIsAPoint) {
  const Bytes memory{planned(machine_.first(4), 64).memory.count * 11 / 10};
  const Sweep found = swept({"devices=1..4"}, machine_, {}, memory);
  EXPECT_FALSE(found.points[0].fits());
  EXPECT_GT(found.points[0].needs, memory);
  EXPECT_EQ(found.points[0].bound(), SweepBound::memory);
  EXPECT_TRUE(found.points[2].fits());
  EXPECT_LE(found.points[2].memory, memory);
  const int smallest = found.smallest[0].devices;
  ASSERT_GT(smallest, 1);
  AnalyticCosts costs(machine_.first(smallest - 1));
  EXPECT_FALSE(fits(alexnet(64), pricing_for(machine_.first(smallest - 1)), costs,
                    machine_.first(smallest - 1).node_of_devices(), memory));
  EXPECT_EQ(fastest(found)->devices, 4);
  EXPECT_EQ(fastest(swept({"devices=1"}, machine_, {}, Bytes{1})), nullptr);
}

TEST_F(SweepOfAlexnet, PricesAreThoseOfNodesAndDevices) {
  Machine dear = machine_.machine();
  for (Node& node : dear.nodes) {
    node.price_per_hour = 10;
    for (Device& device : node.devices) device.price_per_hour = 1;
  }
  const Sweep found = swept({"devices=1,4,8"}, DeviceGraph(dear));
  EXPECT_EQ(found.points[0].price_per_hour, 11);
  EXPECT_EQ(found.points[1].price_per_hour, 14);
  EXPECT_EQ(found.points[2].price_per_hour, 28);
  for (const SweepPoint& point : found.points) {
    const double hours = 1e6 / point.images_per_second() / 3600;
    EXPECT_NEAR(point.price_per_million(), hours * point.price_per_hour, 1e-9 * point.price_per_million());
    EXPECT_LE(cheapest(found)->price_per_million(), point.price_per_million());
  }
}

}  // namespace
}  // namespace cortado::plan
