#include "cortado/sim/step_seconds.h"

#include <algorithm>
#include <utility>

namespace cortado {

StepSeconds::StepSeconds(const Program& program, CostModel& costs, const std::vector<int>& node_of_rank,
                         std::shared_ptr<KnownExchanges> known)
    : program_(program),
      costs_(costs),
      node_of_rank_(node_of_rank),
      known_(std::move(known)),
      owners_(program.placement->slices.size()) {
  for (const Work& work : program.works) {
    times_.push_back(work.kind == Work::Kind::compute ? costs.measure(work.task, program.rank) : TaskTime{});
  }
  for (const Step& step : program.steps)
    if (const auto* scatter = step.as<steps::ScatterGradient>())
      owners_[scatter->parameter] = std::ssize(scatter->group);
}

IndexedVector<StepIndex, Seconds> StepSeconds::of_all() {
  IndexedVector<StepIndex, Seconds> seconds;
  for (const Step& step : program_.steps) seconds.push_back(of(step));
  return seconds;
}

Seconds StepSeconds::of(const Step& step) {
  return std::visit(
      Overloaded{[&](const steps::Compute& compute) { return computing(compute); },
                 [&](const steps::Update&) { return costs_.update(share_of(step), program_.rank); },
                 [&](const steps::Exchange&) { return messages(step); },
                 [&](const steps::OfGroup auto&) { return together(step); },
                 [](const OneOf<steps::Load, steps::Barrier, steps::Seed, steps::Accumulate,
                                steps::AccumulateParameter> auto&) { return Seconds{}; }},
      step.action);
}

Seconds StepSeconds::computing(const steps::Compute& compute) const {
  const TaskTime& time = times_[compute.work];
  if (compute.pass == Pass::forward) return time.forward;
  if (compute.pass == Pass::backward_weights) return time.backward_weights;
  return compute.pass == Pass::backward ? time.backward : Seconds{};  // partial: counts in the pass after
}

Seconds StepSeconds::together(const Step& step) {
  const GroupStep what = group_step(step);
  return costs_.collective(what.kind, {&step.group().ranks(), 1}, what.bytes);
}

StepSeconds::GroupStep StepSeconds::group_step(const Step& step) const {
  const Bytes bytes =
      std::visit(Overloaded{[&](const steps::Exchange&) { return chunks_of(step); },
                            [](const steps::SumStatistics& sum) { return Bytes{sum.sums.bytes.size()}; },
                            [&](const steps::MovesParameters auto&) { return slice_of(step); },
                            [](const steps::Local auto&) { return Bytes{}; }},
                 step.action);
  return {program_.collective_of(step), bytes};
}

// Chunks that make one box together.
Bytes StepSeconds::chunks_of(const Step& exchange) const {
  const Movement movement = program_.movement_of(exchange);
  Bytes bytes;
  for (const auto& chunk : movement.chunks)
    if (chunk) bytes += bytes_of(chunk->shape(), movement.type());
  return bytes;
}

Bytes StepSeconds::slice_of(const Step& step) const {
  Bytes bytes;
  for (ParameterIndex parameter : step.parameters()) {
    const auto& layout = program_.placement->slices[parameter];
    bytes += bytes_of(layout[static_cast<size_t>(program_.rank)]->shape(),
                      program_.placement->parameter_types[parameter]);
  }
  return bytes;
}

// What an update is of: the slice or, with the gradient summed at owners, this rank's share.
Bytes StepSeconds::share_of(const Step& update) const {
  const int64_t owners = owners_[update.as<steps::Update>()->parameter];
  return {slice_of(update).count / std::max<int64_t>(owners, 1)};
}

Seconds StepSeconds::messages(const Step& step) {
  const Work& work = program_.works[step.work()];
  const auto& operation = program_.placement->operations[work.operations[0]];
  const bool copies = operation.kind == Placement::Operation::Kind::copy;
  if (!copies && !step.group().empty()) return together(step);
  return exchange(operation, work, program_.movement_of(step).type());
}

Seconds StepSeconds::exchange(const Placement::Operation& operation, const Work& work, ElementType type) {
  const auto [known, is_new] =
      known_->try_emplace({work.operations[0], work.part.number, static_cast<int>(type)});
  if (!is_new) return known->second;
  GridLayout from(program_.layout_of(operation.inputs[0], work)),
      to(program_.layout_of(operation.outputs[0], work));
  // Addends go to their owners as, the other way round, a copy would; the gradient back is a copy.
  if (operation.kind != Placement::Operation::Kind::copy) std::swap(from, to);
  return known->second = costs_.exchange(exchange_volume(from, to, node_of_rank_, type));
}

}  // namespace cortado
