#include <algorithm>

#include "cortado/program/passes.h"

namespace cortado {
namespace {

using Kind = Placement::Operation::Kind;

class ForwardBuilder {
 public:
  ForwardBuilder(Program& program, const Network& network) : program_(program), network_(network) {
    program.value_buffers.assign(program.placement->values.size(), {});
    program.value_gradient_buffers.assign(program.placement->values.size(), {});
    work_of_operation_.assign(program.placement->operations.size(), {});
    for (WorkIndex w : indices(program.works)) {
      for (OperationIndex operation : program.works[w].operations) work_of_operation_[operation] = w;
    }
  }

  void run() {
    for (WorkIndex index : indices(program_.works)) {
      switch (program_.works[index].kind) {
        case Kind::source:
          place_load(index);
          break;
        case Kind::compute:
          place_compute(index);
          break;
        default:
          place_movement(index);
      }
    }
    program_.forward_end = static_cast<int>(program_.steps.size());
  }

 private:
  const std::optional<Box>& held(ValueIndex value) const {
    return program_.placement->values[value].layout[program_.rank];
  }

  View new_value_buffer(ValueIndex value, Buffer::Kind kind) {
    const auto& box = held(value);
    if (!box) return {};
    const Placement::Value& of = program_.placement->values[value];
    const View view = program_.add_buffer(of.name, kind, bytes_of(box->shape(), of.type), of.type);
    program_.value_buffers[value] = view.buffer;
    return view;
  }
  View view_of(ValueIndex value) const { return program_.whole(program_.value_buffers[value]); }

  void place_load(WorkIndex index) {
    Work& work = program_.works[index];
    for (ValueIndex value : program_.first_operation(work).outputs)
      work.outputs.push_back(new_value_buffer(value, Buffer::Kind::batch));
    Step step{.action = steps::Load{index}, .lane = Lane::communication};
    append_located(step.writes, work.outputs);
    program_.steps.push_back(std::move(step));
  }

  // Where this rank already holds all that it needs, both values share one buffer; a step remains if other
  // ranks need parts of it.
  void place_movement(WorkIndex index) {
    Work& work = program_.works[index];
    if (work.backward_only) return;
    const ValueIndex from = program_.first_operation(work).inputs[0],
                     to = program_.first_operation(work).outputs[0];
    work.inputs = {view_of(from)};
    const bool stays = work.movement.to && work.movement.from == work.movement.to &&
                       work.movement.local == work.movement.to && work.movement.receives.empty();
    if (stays) program_.value_buffers[to] = work.inputs[0].buffer;
    if (!stays && work.movement.to) new_value_buffer(to, Buffer::Kind::activation);
    work.outputs = {view_of(to)};
    if ((stays || !work.movement.to) && work.movement.sends.empty()) return;
    program_.steps.push_back(
        exchange_step(program_, index, false, work.inputs[0], stays ? View{} : work.outputs[0]));
  }

  // True when `work` may write its output over input 0: nobody reads that value later, forward or backward.
  bool may_overwrite_input(WorkIndex index) const {
    const Work& work = program_.works[index];
    if (!work.facts.in_place || work.facts.backward_reads_inputs || !work.inputs[0]) return false;
    const auto& value = program_.placement->values[program_.first_operation(work).inputs[0]];
    if (work.task.local_input(0).size() != work.task.local_output(0).size()) return false;
    if (program_.buffers[work.inputs[0].buffer].kind == Buffer::Kind::batch || value.loss_weight != 0)
      return false;
    const Work& producer = program_.works[work_of_operation_[value.producer]];
    if (producer.kind != Kind::compute) return false;  // its memory may be another value's, too
    if (program_.last_operation(work).recomputed != program_.last_operation(producer).recomputed)
      return false;  // one would spoil the other
    if (producer.facts.backward_reads_outputs && producer.task.has_backward()) return false;
    return std::ranges::all_of(value.consumers, [&](OperationIndex operation) {
      const WorkIndex other = work_of_operation_[operation];
      if (other == index || !other) return true;
      const Work& reader = program_.works[other];
      return other < index && reader.kind == Kind::compute && !program_.last_operation(reader).recomputed &&
             !(reader.facts.backward_reads_inputs && reader.task.has_backward());
    });
  }

  void place_outputs(WorkIndex index) {
    const auto& outputs = program_.last_operation(program_.works[index]).outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const bool over_input = i == 0 && may_overwrite_input(index);
      if (over_input) {
        program_.value_buffers[outputs[i]] = program_.works[index].inputs[0].buffer;
      } else {
        new_value_buffer(outputs[i], Buffer::Kind::activation);
      }
      program_.works[index].outputs.push_back(view_of(outputs[i]));
    }
  }

  // The sums within a layer: their addends, and their sum over the devices. Returns their buffer.
  View place_sums(WorkIndex index, const std::vector<View>& reads) {
    const Work& work = program_.works[index];
    const View sums =
        program_.add_buffer(name_of(work, network_) + " sums", Buffer::Kind::sums,
                            bytes_of(work.facts.forward_sums, ElementType::f64), ElementType::f64);
    Step partial{.reads = reads, .writes = {sums}};
    partial.action = steps::Compute{Pass::forward_partial, index, scratch_of(partial, work), sums};
    program_.steps.push_back(std::move(partial));
    const auto group = program_.first_operation(work).groups[static_cast<size_t>(program_.rank)];
    program_.steps.push_back(
        {.action = steps::SumStatistics{.work = index, .backward = false, .sums = sums, .group = group},
         .lane = Lane::communication,
         .reads = {sums},
         .writes = {sums}});
    return sums;
  }

  // Memory for `step` alone, which writes it.
  View scratch_of(Step& step, const Work& work) {
    if (work.facts.scratch.count == 0) return {};
    step.writes.push_back(
        program_.add_buffer(name_of(work, network_) + " scratch", Buffer::Kind::scratch, work.facts.scratch));
    return step.writes.back();
  }

  void place_compute(WorkIndex index) {
    Work& work = program_.works[index];
    std::vector<View> reads;
    const auto& first = program_.first_operation(work);
    for (size_t i = 0; i < first.inputs.size(); ++i) {
      const bool needed = first.reads[i][program_.rank].has_value();
      work.inputs.push_back(needed ? view_of(first.inputs[i]) : View{});
      if (work.inputs.back()) reads.push_back(work.inputs.back());
    }
    if (work.backward_only) {
      work.outputs.assign(program_.last_operation(work).outputs.size(), {});
      return;
    }
    place_outputs(index);
    const View sums = work.facts.forward_sums > 0 ? place_sums(index, reads) : View{};
    Step step{.reads = reads};
    append_located(step.writes, work.outputs);
    if (sums) step.reads.push_back(sums);
    if (work.facts.saved.count > 0) {
      work.saved =
          program_.add_buffer(name_of(work, network_) + " saved", Buffer::Kind::saved, work.facts.saved);
      step.writes.push_back(work.saved);
    }
    step.action = steps::Compute{Pass::forward, index, scratch_of(step, work), sums};
    program_.steps.push_back(std::move(step));
  }

  Program& program_;
  const Network& network_;
  IndexedVector<OperationIndex, WorkIndex> work_of_operation_;
};

}  // namespace

void place_forward(Program& program, const Network& network) { ForwardBuilder(program, network).run(); }

}  // namespace cortado
