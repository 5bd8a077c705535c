#pragma once

#include <functional>
#include <vector>

#include "cortado/compile/compile.h"
#include "cortado/cost/analytic.h"
#include "cortado/cost/cost_model.h"
#include "cortado/machine/device_graph.h"
#include "cortado/net/network.h"
#include "cortado/parallel/strategy.h"
#include "cortado/sim/simulator.h"

namespace cortado {

// A machine with one rank on each device: what things cost there, and what is known of its kernels. Where
// `costs` measures, all ranks of the measuring job simulate the same things in the same order.
struct SimulatedMachine {
  const DeviceGraph& graph;
  CostModel& costs;
  KernelProfile& kernels;
};

// A machine that is not here: costs by its figures, and this build's kernels where they are compiled for the
// same instruction set, else a guess.
class AbsentMachine {
 public:
  explicit AbsentMachine(const DeviceGraph& graph)
      : graph_(graph), costs_(graph), kernels_(KernelProfile::compiled_for(graph.instruction_set())) {}
  SimulatedMachine simulated() { return {graph_, costs_, kernels_}; }
  CostModel& costs() { return costs_; }
  bool guesses_kernels() const { return kernels_.guess(); }

 private:
  const DeviceGraph& graph_;
  AnalyticCosts costs_;
  KernelProfile kernels_;
};

struct SimulatedJob {
  std::vector<Program> programs;  // of all ranks, or of those that differ
  EqualBlocks blocks;             // the former: one
  Simulation simulation;          // of the same ranks
};

enum class SimulatedRanks { that_differ, all };

SimulatedJob simulate_job(const Network& network, const NodeStrategies& strategies, const Schedule& schedule,
                          const SimulatedMachine& machine,
                          SimulatedRanks ranks = SimulatedRanks::that_differ);

// A judge of strategies: the seconds of a simulated iteration. All that it is given must outlive it.
std::function<Seconds(const Strategy&)> simulated_seconds(const Network& network,
                                                          const SimulatedMachine& machine);

}  // namespace cortado
