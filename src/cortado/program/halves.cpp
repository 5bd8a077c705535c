#include <algorithm>
#include <fmt/format.h>

#include "cortado/program/passes.h"

namespace cortado {
namespace {

using Operation = Placement::Operation;

// True when each rank holds the same samples, two or more, before and after the movement, and ranks that
// share some samples share all: then the first halves of all ranks move by themselves. A collective (several
// ranks need one box) stays whole. The placement answers, so all ranks agree.
bool moves_by_samples(const Placement& placement, const Operation& operation) {
  if (operation.kind != Operation::Kind::copy || operation.gradients != Operation::Gradients::own)
    return false;
  if (operation.inputs.size() != 1 || operation.outputs.size() != 1 || !operation.node) return false;
  const auto &from = placement.values[operation.inputs[0]], &to = placement.values[operation.outputs[0]];
  if (from.partial || placement.operations[from.producer].kind == Operation::Kind::source) return false;
  std::vector<Range> blocks;
  for (size_t rank = 0; rank < from.layout.size(); ++rank) {
    const auto &own = from.layout[rank], &needed = to.layout[rank];
    if (own.has_value() != needed.has_value()) return false;
    if (!own) continue;
    if ((*own)[0] != (*needed)[0] || (*own)[0].size() < 2) return false;
    if (std::count(to.layout.begin(), to.layout.end(), needed) > 1) return false;
    blocks.push_back((*own)[0]);
  }
  const auto apart = [](const Range& one, const Range& other) {
    return one == other || one.end <= other.begin || other.end <= one.begin;
  };
  return std::ranges::all_of(blocks, [&](const Range& one) {
    return std::ranges::all_of(blocks, [&](const Range& other) { return apart(one, other); });
  });
}

Box with_samples(Box box, const Range& samples) {
  box[0] = samples;
  return box;
}

Movement of_samples(Movement movement, const Range& samples) {
  for (auto* box : {&movement.from, &movement.to, &movement.local})
    if (*box) *box = with_samples(**box, samples);
  for (auto* parts : {&movement.sends, &movement.receives})
    for (auto& part : *parts) part.box = with_samples(part.box, samples);
  return movement;
}

// The part of a view that holds some of `all` samples.
View of_samples(const View& view, const Range& samples, const Range& all) {
  if (!view) return view;
  const int64_t each = view.bytes.size() / all.size();
  return {view.buffer,
          {view.bytes.begin + each * (samples.begin - all.begin),
           view.bytes.begin + each * (samples.end - all.begin)}};
}

Task of_samples(Task task, const Range& samples) {
  task.domain_box[0] = samples;
  for (auto* boxes : {&task.input_boxes, &task.output_boxes})
    for (Box& box : *boxes) box = with_samples(box, samples);
  return task;
}

// True when each sample of the outputs depends on the same sample of the inputs, and on no other.
bool computes_by_samples(const Task& task) {
  const Layer& layer = task.layer();
  if (!task.cut || task.local_sums || !layer.cuts(task.inputs).n) return false;
  const Range& samples = task.domain_box[0];
  for (const auto* boxes : {&task.input_boxes, &task.output_boxes})
    for (const Box& box : *boxes)
      if (box.rank() == 0 || box[0] != samples) return false;
  for (int k = 0; k < static_cast<int>(task.output_boxes.size()); ++k)
    if (layer.sums(k)) return false;
  return samples.size() >= 2;
}

class Halver {
 public:
  Halver(Program& program, const TaskOracle& oracle)
      : program_(program), oracle_(oracle), halves_(program.steps.size()) {}

  void run() {
    for (StepIndex s(0); s.value() < program_.forward_end; ++s) {
      const Step& step = program_.steps[s];
      if (!step.is<steps::Exchange>() || !step.group().empty()) continue;
      const Work& work = program_.works[step.work()];
      if (!moves_by_samples(*program_.placement, program_.placement->operations[work.operations[0]]))
        continue;
      halve_exchange(s);
      halve_readers(s);
      halve_writers(s);
    }
    reorder();
  }

 private:
  using Pair = std::vector<Step>;  // the two halves of a step; empty: it stays whole

  static bool touches(const std::vector<View>& views, const View& other) {
    return std::ranges::any_of(views, [&](const View& view) { return overlap(view, other); });
  }

  // A copy of a work for half of its samples: the same buffers, but half of each.
  Work half_of(WorkIndex whole, int number, const Range& all) const {
    Work half = program_.works[whole];
    half.part = {.whole = whole, .number = number, .count = 2};
    const Range samples = part_of(all, number, 2);
    for (auto* views : {&half.inputs, &half.outputs})
      for (View& view : *views) view = of_samples(view, samples, all);
    half.saved = of_samples(half.saved, samples, all);
    return half;
  }

  WorkIndex add_work(Work work) {
    const WorkIndex added = program_.works.end_index();
    program_.works.push_back(std::move(work));
    return added;
  }

  void halve_exchange(StepIndex s) {
    const steps::Exchange whole = *program_.steps[s].as<steps::Exchange>();
    const Movement movement = program_.works[whole.work].movement;
    const Range all = (*(movement.from ? movement.from : movement.to))[0];
    for (int number : {0, 1}) {
      Work half = half_of(whole.work, number, all);
      const Range samples = part_of(all, number, 2);
      half.movement = of_samples(movement, samples);
      const WorkIndex part = add_work(std::move(half));
      halves_[s].push_back(exchange_step(program_, part, false, of_samples(whole.from, samples, all),
                                         of_samples(whole.to, samples, all)));
    }
  }

  // The first step that reads what `exchange` writes: half of it is computed while the other half travels.
  void halve_readers(StepIndex exchange) {
    for (StepIndex s = exchange; s.value() < program_.forward_end; ++s) {
      const Step& step = program_.steps[s];
      if (step.lane != Lane::compute || !reads_of(step, exchange)) continue;
      halve_computing(s);
      return;
    }
  }
  bool reads_of(const Step& step, StepIndex exchange) const {
    return std::ranges::any_of(program_.steps[exchange].writes,
                               [&](const View& view) { return touches(step.reads, view); });
  }

  // What makes the tensor, back to a layer with weights: half of it travels while the other half is computed.
  void halve_writers(StepIndex exchange) {
    StepIndex s = exchange;
    --s;
    const View moved = program_.steps[exchange].as<steps::Exchange>()->from;
    while (s && (!moved || !touches(program_.steps[s].writes, moved))) --s;
    for (; s && halve_computing(s); --s)
      if (!program_.works[program_.steps[s].work()].parameters.empty()) return;
  }

  // False where the step stays whole.
  bool halve_computing(StepIndex s) {
    if (!halves_[s].empty()) return true;
    const Step whole = program_.steps[s];
    if (!whole.runs(Pass::forward) || whole.as<steps::Compute>()->sums) return false;
    const Work& work = program_.works[whole.work()];
    const auto nowhere = [](const View& view) { return !view; };
    if (!computes_by_samples(work.task) || work.facts.forward_sums > 0 ||
        std::ranges::any_of(work.inputs, nowhere) || std::ranges::any_of(work.outputs, nowhere))
      return false;
    const Range all = work.task.domain_box[0];
    std::vector<Work> parts;
    for (int number : {0, 1}) {
      Work part = half_of(whole.work(), number, all);
      const Range samples = part_of(all, number, 2);
      part.task = of_samples(work.task, samples);
      const auto facts = oracle_(part.task);
      if (!facts || !fits(*facts, work.facts, samples.size(), all.size())) return false;
      part.facts = *facts;
      part.partial_gradients.assign(part.parameters.size(), {});
      part.output_gradients.clear();
      part.input_gradients.clear();
      parts.push_back(std::move(part));
    }
    for (Work& part : parts) halves_[s].push_back(forward_step(whole, std::move(part), all));
    return true;
  }

  Step forward_step(const Step& whole, Work part, const Range& all) {
    Step step = whole;
    steps::Compute compute{.pass = Pass::forward};
    std::erase(step.writes, whole.as<steps::Compute>()->scratch);
    const Range samples = part_of(all, part.part.number, 2);
    for (auto* views : {&step.reads, &step.writes})
      for (View& view : *views) view = of_samples(view, samples, all);
    if (const Bytes scratch = part.facts.scratch; scratch.count > 0) {
      compute.scratch = program_.add_buffer("scratch of a half", Buffer::Kind::scratch, scratch);
      step.writes.push_back(compute.scratch);
    }
    compute.work = add_work(std::move(part));
    step.action = compute;
    return step;
  }

  // True when the halves leave memory as the whole would: weights in the same order, the same layers in
  // place, and the same bytes saved for the backward pass.
  static bool fits(const TaskFacts& half, const TaskFacts& whole, int64_t samples, int64_t of) {
    const bool saves_the_same = whole.saved.count == 0 || (whole.saved_by_samples && half.saved_by_samples);
    return half.parameter_order == whole.parameter_order && half.in_place == whole.in_place &&
           saves_the_same && half.saved.count * of == whole.saved.count * samples;
  }

  // Puts the halved steps of one run into order: the first halves of all, then the second. A run ends with
  // what it sends.
  void reorder() {
    IndexedVector<StepIndex, Step> steps;
    std::vector<StepIndex> together;
    const auto flush = [&] {
      for (size_t which : {0, 1})
        for (StepIndex s : together) steps.push_back(halves_[s][which]);
      together.clear();
    };
    int forward_end = 0;
    for (StepIndex s : indices(program_.steps)) {
      if (s.value() == program_.forward_end) {
        flush();
        forward_end = static_cast<int>(steps.size());
      }
      Step& step = program_.steps[s];
      const bool computes_after_a_message = step.lane == Lane::compute && !together.empty() &&
                                            program_.steps[together.back()].lane == Lane::communication;
      if (halves_[s].empty() || computes_after_a_message) flush();
      if (halves_[s].empty()) {
        steps.push_back(std::move(step));
      } else {
        together.push_back(s);
      }
    }
    flush();
    if (program_.forward_end == static_cast<int>(program_.steps.size()))
      forward_end = static_cast<int>(steps.size());
    program_.steps = std::move(steps);
    program_.forward_end = forward_end;
  }

  Program& program_;
  const TaskOracle& oracle_;
  IndexedVector<StepIndex, Pair> halves_;
};

}  // namespace

void halve_halos(Program& program, const TaskOracle& oracle) { Halver(program, oracle).run(); }

}  // namespace cortado
