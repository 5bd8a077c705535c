#include "cortado/sim/predict.h"

#include <algorithm>
#include <numeric>

#include "cortado/cost/analytic.h"
#include "cortado/program/exposure.h"
#include "cortado/sim/step_seconds.h"

namespace cortado {
namespace {

TaskPass task_pass_of(Pass pass) {
  if (pass == Pass::backward_weights) return TaskPass::backward_weights;
  return is_forward(pass) ? TaskPass::forward : TaskPass::backward;
}

}  // namespace

StepPart part_of(const Step& step) {
  return std::visit(
      Overloaded{[](const steps::Compute& compute) {
                   return is_forward(compute.pass) && !compute.again ? StepPart::forward : StepPart::backward;
                 },
                 [](const OneOf<steps::Exchange, steps::SumStatistics> auto&) { return StepPart::transfer; },
                 [](const steps::MovesParameters auto&) { return StepPart::sync; },
                 [](const steps::Update&) { return StepPart::update; },
                 [](const OneOf<steps::Load, steps::Barrier, steps::Seed, steps::Accumulate,
                                steps::AccumulateParameter> auto&) { return StepPart::other; }},
      step.action);
}

std::string_view name_of(StepPart part) {
  constexpr std::string_view names[] = {"forward", "backward", "sync", "transfer", "update", "other"};
  return names[static_cast<size_t>(part)];
}

Prediction predict(const Network& network, CompileOptions options, CostModel& costs,
                   const std::vector<int>& node_of_rank) {
  Prediction prediction;
  options.rank = 0;
  prediction.program = compile(network, std::move(options)).program;
  prediction.steps = StepSeconds(prediction.program, costs, node_of_rank).of_all();
  return prediction;
}

std::vector<PredictedLayer> compare(const Prediction& prediction, const Network& network,
                                    const IndexedVector<StepIndex, Seconds>& measured) {
  const Program& program = prediction.program;
  IndexedVector<WorkIndex, PredictedLayer> layers;
  for (const Work& work : program.works) layers.push_back({.name = name_of(work, network)});
  PredictedLayer between{.name = "between layers"};
  for (StepIndex s : indices(program.steps)) {
    const Step& step = program.steps[s];
    if (step.is<steps::Load>()) continue;
    const WorkIndex work = layer_work(program, step);
    PredictedLayer& layer = work ? layers[work] : between;
    const auto part = static_cast<size_t>(part_of(step));
    layer.predicted[part] += prediction.steps[s];
    layer.measured[part] += measured[s];
  }
  std::vector<PredictedLayer> shown;
  for (WorkIndex w : indices(layers))
    if (program.works[w].is_layer()) shown.push_back(std::move(layers[w]));
  shown.push_back(std::move(between));
  return shown;
}

Machine corrected(Machine machine, const Prediction& prediction, const std::vector<int>& node_of_rank,
                  const IndexedVector<StepIndex, Seconds>& measured) {
  machine.calibration = {.message_overhead = machine.calibration.message_overhead,
                         .allreduce = machine.calibration.allreduce};
  const Program& program = prediction.program;
  AnalyticCosts limits((DeviceGraph(machine)));  // every limit reached, nothing corrected
  const auto least = StepSeconds(program, limits, node_of_rank).of_all();
  // Sums by kind and pass of tasks, then of exchanges, then of collectives: at the limit, and measured.
  constexpr size_t tasks = task_kinds * task_passes, exchanges = tasks, collectives = tasks + 1;
  Seconds at_limit[tasks + 2], took[tasks + 2];
  for (StepIndex s : indices(program.steps)) {
    const Step& step = program.steps[s];
    const StepPart part = part_of(step);
    size_t sum = 0;
    if (const auto* compute = step.as<steps::Compute>()) {
      const TaskKind kind = kind_of(program.works[compute->work].task);
      sum = static_cast<size_t>(kind) * task_passes + static_cast<size_t>(task_pass_of(compute->pass));
    } else if (part == StepPart::sync || part == StepPart::transfer) {
      sum = step.is<steps::Exchange>() ? exchanges : collectives;
    } else {
      continue;
    }
    at_limit[sum] += least[s];
    took[sum] += measured[s];
  }
  auto ratio = [](Seconds over, Seconds under) {
    return over.count > 0 && under.count > 0 ? over.count / under.count : 1.0;
  };
  Calibration& calibration = machine.calibration;
  for (size_t sum = 0; sum < tasks; ++sum)
    calibration.efficiency.values[sum / task_passes][sum % task_passes] = ratio(at_limit[sum], took[sum]);
  calibration.exchange_correction = ratio(took[exchanges], at_limit[exchanges]);
  calibration.collective_correction = ratio(took[collectives], at_limit[collectives]);
  return machine;
}

}  // namespace cortado
