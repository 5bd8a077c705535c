#pragma once

#include <algorithm>
#include <gtest/gtest.h>
#include <span>
#include <string>

#include "cortado/cost/analytic.h"
#include "cortado/program/lower.h"
#include "cortado/sim/simulator.h"

#include "tests/program/nets.h"

namespace cortado::testing {

// Nodes of devices: 1 GFLOP/s, 10 GB/s of memory; 1 GB/s and 1 us within a node, 0.1 GB/s and 10 us between
// nodes, which have as much for all of their devices together.
inline DeviceGraph machine_of(int nodes, int devices) {
  Node node;
  node.devices.assign(static_cast<size_t>(devices), Device{.name = "",
                                                           .peak = {1e9},
                                                           .memory_bandwidth = {10e9},
                                                           .memory = {1 << 30},
                                                           .task_overhead = {1e-6}});
  node.links = {{.group = devices, .link = {{1e-6}, {1e9}}}};
  node.nic = {0.1e9};
  Machine machine;
  machine.name = "test";
  machine.nodes.assign(static_cast<size_t>(nodes), node);
  machine.network = {{10e-6}, {0.1e9}};
  return DeviceGraph(machine);
}

inline std::vector<Program> programs_of(const Network& network, const Strategy& strategy, int ranks) {
  const Placement placement = place(network, resolve(strategy, network, ranks, "test"), ranks);
  std::vector<Program> programs;
  for (int rank = 0; rank < ranks; ++rank)
    programs.push_back(
        lower(network, placement, facts_of, {.rank = rank, .schedule = strategy.schedule, .after_pass = {}}));
  return programs;
}

// A random net under a random strategy, on one or two nodes of one to four devices.
struct RandomJob {
  std::string name;
  DeviceGraph machine;
  Network net;
  std::vector<Program> programs;
};
inline RandomJob random_job(uint32_t seed) {
  const int nodes = 1 + static_cast<int>(seed % 2), devices = 1 + static_cast<int>(seed / 2 % 4);
  RandomJob job{
      .name = std::to_string(seed) + " on " + std::to_string(nodes) + " x " + std::to_string(devices),
      .machine = machine_of(nodes, devices),
      .net = random_net(seed),
      .programs = {}};
  const Strategy strategy = load_strategy("random:" + std::to_string(seed), job.net, job.machine.devices());
  job.programs = programs_of(job.net, strategy, job.machine.devices());
  return job;
}

// Calls check(job, its simulation) with random jobs.
template <typename Check>
void simulate_random_jobs(uint32_t count, Check&& check) {
  for (uint32_t seed = 0; seed < count; ++seed) {
    const RandomJob job = random_job(seed);
    SCOPED_TRACE(job.name);
    AnalyticCosts costs(job.machine);
    check(job, simulate(job.programs, costs, job.machine));
  }
}

// A rank's steps in order.
inline std::span<const TimelineEntry> entries_of(const Program& program, const Simulation& simulation) {
  const auto first = std::ranges::find(simulation.timeline, program.rank, &TimelineEntry::rank);
  return {&*first, program.steps.size()};
}

inline bool carries(const std::vector<Program>& programs) {
  return std::ranges::any_of(
      programs, [](const Program& program) { return std::ranges::any_of(program.steps, &Step::carried); });
}

inline Simulation simulated(const Network& network, const Strategy& strategy, const DeviceGraph& machine) {
  AnalyticCosts costs(machine);
  return simulate(programs_of(network, strategy, machine.devices()), costs, machine);
}

}  // namespace cortado::testing
