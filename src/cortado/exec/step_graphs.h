#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cortado/device/queue.h"
#include "cortado/program/program.h"

namespace cortado {

// Which steps of an iteration a device does as graphs: runs of compute steps that need nothing of the host.
struct GraphPlan {
  struct Run {
    std::vector<StepIndex> steps;  // that one graph does; two or more
  };
  std::vector<Run> runs;
  int launched = 0;                      // steps that kernels or fills do, in graphs or not
  std::vector<std::string> in_no_graph;  // why not: "layer 'drop6' depends on the iteration"
};
// A run ends where the host looks at values or does something: where a step waits for a message or a batch or
// is waited for by one, at the loss, and at steps that belong to the iteration before. Updates, whose numbers
// the host gives, come after their run: nothing in it reads the weights any more.
GraphPlan plan_graphs(const Program& program, const Network& network);

// The graphs of one program on one queue. The first iteration launches each step, so that what kernels set up
// at their first launch is there; the second one captures.
class StepGraphs {
 public:
  StepGraphs(GraphPlan plan, size_t steps, device::Queue& queue);

  // True where a graph does the step: the first step of a run replays it, `launch` being called for each step
  // to be captured before. False: the caller launches the step.
  bool replays(StepIndex step, const std::function<void(StepIndex)>& launch);
  const GraphPlan& plan() const { return plan_; }
  std::string text() const;  // "38 of 42 steps in 2 graphs; not: layer 'drop6' depends on the iteration"

 private:
  struct Captured {
    bool warm = false;  // its steps have been launched once
    std::unique_ptr<device::Graph> graph;
  };
  std::unique_ptr<device::Graph> capture(const GraphPlan::Run& run,
                                         const std::function<void(StepIndex)>& launch);

  GraphPlan plan_;
  device::Queue& queue_;
  std::vector<Captured> captured_;             // by run
  IndexedVector<StepIndex, int> run_of_step_;  // -1: in none
};

}  // namespace cortado
