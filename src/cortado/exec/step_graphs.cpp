#include "cortado/exec/step_graphs.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <utility>

#include "cortado/layers/dropout.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/recurrent.h"

namespace cortado {
namespace {

bool is_launched(const Step& step) {
  return step.is<steps::Seed>() || step.is<steps::Compute>() || step.is<steps::Accumulate>() ||
         step.is<steps::AccumulateParameter>();
}

// Whether passes depend on more than inputs and parameters: on random numbers of the iteration, on states
// that go on from batch to batch, or on a program of the user's.
bool depends_on_iteration(const Layer& layer) {
  const auto* pooling = dynamic_cast<const Pooling*>(&layer);
  return dynamic_cast<const Dropout*>(&layer) || dynamic_cast<const Recurrent*>(&layer) ||
         (pooling && pooling->options().method == PoolingOptions::Method::stochastic) || layer.writes_files();
}

// Why the host has to do something at each launch of the step; empty: it has not.
std::string obstacle_of(const Program& program, const Network& network, const Step& step) {
  if (step.late) return "late gradients";
  if (!step.is<steps::Compute>()) return "";
  for (NodeIndex node : program.works[step.work()].nodes) {
    const auto& layer = network.nodes()[node];
    if (depends_on_iteration(*layer.layer))
      return fmt::format("layer '{}' depends on the iteration", layer.name);
  }
  return "";
}

}  // namespace

GraphPlan plan_graphs(const Program& program, const Network& network) {
  std::set<StepIndex> awaited;  // by the communication lane
  for (const Step& step : program.steps)
    if (step.lane == Lane::communication) awaited.insert(step.waits.begin(), step.waits.end());
  GraphPlan plan;
  GraphPlan::Run run;
  const auto end_run = [&] {
    if (run.steps.size() > 1) plan.runs.push_back(std::move(run));
    run = {};
  };
  for (StepIndex s : indices(program.steps)) {
    const Step& step = program.steps[s];
    if (step.lane != Lane::compute) continue;
    if (!step.waits.empty() || !step.waits_before.empty()) end_run();
    const std::string obstacle = obstacle_of(program, network, step);
    if (is_launched(step) && obstacle.empty()) {
      run.steps.push_back(s);
    } else if (step.late || !step.is<steps::Update>()) {
      end_run();
    }
    plan.launched += is_launched(step);
    if (!obstacle.empty() && std::ranges::find(plan.in_no_graph, obstacle) == plan.in_no_graph.end())
      plan.in_no_graph.push_back(obstacle);
    if (awaited.contains(s)) end_run();
  }
  end_run();
  return plan;
}

StepGraphs::StepGraphs(GraphPlan plan, size_t steps, device::Queue& queue)
    : plan_(std::move(plan)), queue_(queue), captured_(plan_.runs.size()) {
  run_of_step_.assign(steps, -1);
  for (size_t run = 0; run < plan_.runs.size(); ++run)
    for (StepIndex step : plan_.runs[run].steps) run_of_step_[step] = static_cast<int>(run);
}

bool StepGraphs::replays(StepIndex step, const std::function<void(StepIndex)>& launch) {
  if (run_of_step_[step] < 0) return false;
  const auto number = static_cast<size_t>(run_of_step_[step]);
  const GraphPlan::Run& run = plan_.runs[number];
  Captured& captured = captured_[number];
  const bool first = step == run.steps.front();
  if (first && captured.warm) {
    if (!captured.graph) captured.graph = capture(run, launch);
    queue_.replay(*captured.graph);
  }
  if (step == run.steps.back()) captured.warm = true;
  return captured.graph != nullptr;
}

std::unique_ptr<device::Graph> StepGraphs::capture(const GraphPlan::Run& run,
                                                   const std::function<void(StepIndex)>& launch) {
  queue_.begin_capture();
  try {
    for (StepIndex step : run.steps) launch(step);
  } catch (...) {
    queue_.end_capture();
    throw;
  }
  return queue_.end_capture();
}

std::string StepGraphs::text() const {
  size_t steps = 0;
  for (const GraphPlan::Run& run : plan_.runs) steps += run.steps.size();
  std::string text = fmt::format("{} of {} steps in {} graph{}", steps, plan_.launched, plan_.runs.size(),
                                 plan_.runs.size() == 1 ? "" : "s");
  if (!plan_.in_no_graph.empty()) text += fmt::format("; not: {}", fmt::join(plan_.in_no_graph, ", "));
  return text;
}

}  // namespace cortado
