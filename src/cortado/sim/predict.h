#pragma once

#include <string>
#include <vector>

#include "cortado/compile/compile.h"
#include "cortado/cost/cost_model.h"
#include "cortado/machine/device_graph.h"
#include "cortado/net/network.h"

namespace cortado {

// The terms of Eq. 1: which of them a step's seconds belong to.
enum class StepPart { forward, backward, sync, transfer, update, other };
inline constexpr StepPart step_parts[] = {StepPart::forward,  StepPart::backward, StepPart::sync,
                                          StepPart::transfer, StepPart::update,   StepPart::other};
std::string_view name_of(StepPart part);
StepPart part_of(const Step& step);

// The Program of rank 0, and how long each of its steps should take. Where `costs` measures, all ranks call
// it with the same arguments.
struct Prediction {
  Program program;
  IndexedVector<StepIndex, Seconds> steps;
};
Prediction predict(const Network& network, CompileOptions options, CostModel& costs,
                   const std::vector<int>& node_of_rank);

// Predicted and measured times of a layer (or chain run as one kernel), by part.
struct PredictedLayer {
  std::string name;
  Seconds predicted[std::size(step_parts)], measured[std::size(step_parts)];
};
// One entry per compute work of the program, then one for what belongs to no layer (updates, sums of
// gradients of a tensor that several layers read). `measured`: per step.
std::vector<PredictedLayer> compare(const Prediction& prediction, const Network& network,
                                    const IndexedVector<StepIndex, Seconds>& measured);

// The machine with the efficiencies that tasks reached in these measured steps, by kind and phase, and the
// corrections of messages and collectives.
Machine corrected(Machine machine, const Prediction& prediction, const std::vector<int>& node_of_rank,
                  const IndexedVector<StepIndex, Seconds>& measured);

}  // namespace cortado
