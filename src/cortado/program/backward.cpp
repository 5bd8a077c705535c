#include <algorithm>
#include <map>

#include "cortado/base/error.h"
#include "cortado/program/passes.h"

namespace cortado {
namespace {

using Kind = Placement::Operation::Kind;

// Builds the backward pass. A value's gradient is the sum of the contributions of its consumers (and of the
// loss weight when it is a loss); a contribution is a buffer, which several values may share when a layer
// passes its output gradient through (Eltwise sum). With `keep`, no gradient is written over another. With
// `passing`, the gradients of parameters have buffers.
class BackwardBuilder {
 public:
  BackwardBuilder(Program& program, const Network& network, bool keep, bool passing)
      : program_(program),
        network_(network),
        keep_(keep),
        passing_(passing && program.placement->ranks == 1),
        contributions_(program.placement->values.size()),
        users_left_(network.parameters().size(), 0),
        parameter_written_(network.parameters().size(), false),
        passing_gradients_(network.parameters().size()) {
    for (const Work& work : program.works) {
      for (size_t p = 0; p < work.parameters.size(); ++p) {
        if (work.task.parameter_gradients[p]) ++users_left_[work.parameters[p]];
      }
    }
  }

  void run() {
    program_.steps.push_back({.action = steps::Barrier{}});
    for (WorkIndex index(program_.works.size() - 1); index; --index) {
      const Work& work = program_.works[index];
      if (weights_due_ && !only_moves(work.operations.front(), weights_due_)) place_due_weights();
      if (work.kind == Kind::compute && work.task.has_backward()) place_compute(index);
      if (work.kind == Kind::copy || work.kind == Kind::sum) place_movement(index);
      if (work.kind == Kind::source && keep_) place_source_gradients(work);
    }
    place_due_weights();
    for (auto* steps : {&pushes_, &replicated_, &updates_, &pulls_})
      std::ranges::move(*steps, std::back_inserter(program_.steps));
  }

 private:
  const Placement::Value& value(ValueIndex index) const { return program_.placement->values[index]; }
  Bytes bytes_of_value(ValueIndex index) const {
    return bytes_of(value(index).layout[program_.rank]->shape(), value(index).type);
  }
  View new_buffer(std::string name, const Box& box, ElementType type) {
    return program_.add_buffer(std::move(name), Buffer::Kind::gradient, bytes_of(box.shape(), type), type);
  }
  View new_gradient(ValueIndex index, std::string_view suffix) {
    return new_buffer(value(index).name + std::string(suffix), *value(index).layout[program_.rank],
                      value(index).type);
  }

  bool shared(const View& view) const {
    if (keep_) return true;
    auto found = references_.find(view.buffer);
    return found != references_.end() && found->second > 1;
  }

  void contribute(ValueIndex index, const View& view) {
    contributions_[index].push_back(view);
    ++references_[view.buffer];
  }

  View seed(ValueIndex index, double weight) {
    const View view = new_gradient(index, " loss weight");
    program_.steps.push_back({.action = steps::Seed{weight}, .writes = {view}});
    return view;
  }

  // destination = sum of `parts`; with one part, a copy.
  View accumulate(ValueIndex index, const std::vector<View>& parts, bool fresh) {
    auto own = std::ranges::find_if(parts, [&](const View& part) { return !shared(part); });
    const View destination = fresh || own == parts.end() ? new_gradient(index, " gradient") : *own;
    program_.steps.push_back({.action = steps::Accumulate{}, .reads = parts, .writes = {destination}});
    return destination;
  }

  // The complete gradient of this rank's part of a value, alone in its buffer when `exclusive`.
  View complete_gradient(ValueIndex index, bool exclusive) {
    auto& parts = contributions_[index];
    if (const BufferIndex known = program_.value_gradient_buffers[index]) {
      ensure(!exclusive, "a gradient that others read is not written over");
      ++references_[known];
      return program_.whole(known);
    }
    const double weight = value(index).loss_weight;
    if (weight != 0 || parts.empty()) contribute(index, seed(index, weight));
    View view = parts[0];
    if (parts.size() > 1) {
      view = accumulate(index, parts, false);
    } else if (exclusive && shared(view) && !keep_) {
      view = accumulate(index, parts, true);
    }
    for (const View& part : parts) {
      if (part != view) --references_[part.buffer];
    }
    if (std::ranges::find(parts, view) == parts.end()) references_[view.buffer] = 1;
    program_.value_gradient_buffers[index] = view.buffer;
    if (!exclusive || !keep_) return view;
    const View copy = accumulate(index, {view}, true);
    references_[copy.buffer] = 1;
    return copy;
  }

  // Nobody reads the gradients of samples but who looks at them later.
  void place_source_gradients(const Work& work) {
    for (ValueIndex output : program_.last_operation(work).outputs)
      if (!contributions_[output].empty()) complete_gradient(output, false);
  }

  // The adjoint of a movement: the gradient of what was moved becomes a contribution to the value moved from.
  void place_movement(WorkIndex index) {
    Work& work = program_.works[index];
    const ValueIndex from = program_.first_operation(work).inputs[0],
                     to = program_.first_operation(work).outputs[0];
    if (!value(to).needs_gradient || !value(from).needs_gradient) return;
    ensure(!work.backward_only || value(to).loss_weight == 0, "a gathered gradient starts elsewhere");
    const Movement back = adjoint(work.movement);
    const View gradient = back.from ? complete_gradient(to, false) : View{};
    work.output_gradients = {gradient};
    const bool stays = back.to && back.local == back.to && back.from == back.to && back.receives.empty();
    if (gradient) --references_[gradient.buffer];
    const bool gets = back.to && (back.local || !back.receives.empty());
    if (gets) contribute(from, stays ? gradient : new_gradient(from, " gradient"));
    work.input_gradients = {gets ? contributions_[from].back() : View{}};
    if ((stays || !gets) && back.sends.empty()) return;
    program_.steps.push_back(
        exchange_step(program_, index, true, gradient, stays ? View{} : work.input_gradients[0]));
  }

  void place_input_gradients(Work& work) {
    const auto& inputs = program_.first_operation(work).inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!work.task.input_gradients[i]) {
        work.input_gradients.emplace_back();
        continue;
      }
      const View output = work.output_gradients.empty() ? View{} : work.output_gradients[0];
      bool reuse = work.facts.passes_output_gradient || (work.facts.in_place && i == 0 && !shared(output));
      bool fits = output && output.bytes.size() == bytes_of_value(inputs[i]).count;
      ensure(fits || !work.facts.passes_output_gradient, "a gradient is passed to an input of another size");
      work.input_gradients.push_back(reuse && fits ? output : new_gradient(inputs[i], " gradient"));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (work.input_gradients[i]) contribute(inputs[i], work.input_gradients[i]);
    }
  }

  void release_output_gradients(const Work& work) {
    for (const View& view : work.output_gradients) --references_[view.buffer];
  }

  Step backward_step(const Work& work, WorkIndex index, Pass pass) {
    ensure(!work.backward_only || work.facts.saved.count == 0, "the forward pass saves nothing for it");
    steps::Compute compute{.pass = pass, .work = index};
    Step step;
    append_located(step.reads, work.output_gradients);
    if (work.facts.backward_reads_inputs) append_located(step.reads, work.inputs);
    if (work.facts.backward_reads_outputs) append_located(step.reads, work.outputs);
    if (work.saved) step.reads.push_back(work.saved);
    if (work.facts.scratch.count > 0) {
      compute.scratch = program_.add_buffer(name_of(work, network_) + " scratch", Buffer::Kind::scratch,
                                            work.facts.scratch);
      step.writes.push_back(compute.scratch);
    }
    if (work.facts.overwrites_output_gradients) append_located(step.writes, work.output_gradients);
    step.action = compute;
    return step;
  }

  // The buffer of a gradient of the work's parameter `p`, in its kernel's order.
  View new_parameter_gradient(const Work& work, size_t p, std::string_view suffix) {
    const Network::Parameter& of = network_.parameters()[work.parameters[p]];
    const std::vector<int64_t>& padded = work.facts.parameter_elements;
    int64_t elements = p < padded.size() ? padded[p] : 0;
    if (elements == 0)
      elements = program_.placement->slices[work.parameters[p]][program_.rank]->shape().size();
    return program_.add_buffer(of.name + std::string(suffix), Buffer::Kind::gradient,
                               bytes_of(elements, of.type), of.type);
  }

  // Decides where each parameter's gradient goes: the first writer's to the parameter's own memory or, where
  // it passes, to a buffer; later ones to buffers that are added.
  void place_parameter_gradients(Work& work) {
    for (size_t p = 0; p < work.parameters.size(); ++p) {
      const ParameterIndex parameter = work.parameters[p];
      if (!work.task.parameter_gradients[p]) continue;
      if (parameter_written_[parameter])
        work.partial_gradients[p] = new_parameter_gradient(work, p, " partial gradient");
      else if (passing_)
        work.partial_gradients[p] = passing_gradients_[parameter] =
            new_parameter_gradient(work, p, " gradient");
      parameter_written_[parameter] = true;
    }
  }

  // The sums within a layer that its backward pass needs. Returns their buffer.
  View place_sums(WorkIndex index) {
    const Work& work = program_.works[index];
    const View sums =
        program_.add_buffer(name_of(work, network_) + " gradient sums", Buffer::Kind::sums,
                            bytes_of(work.facts.backward_sums, ElementType::f64), ElementType::f64);
    Step partial = backward_step(work, index, Pass::backward_partial);
    partial.as<steps::Compute>()->sums = sums;
    partial.writes.push_back(sums);
    append_located(partial.writes,
                   work.partial_gradients);  // a chain's kernel may write gradients here already
    program_.steps.push_back(std::move(partial));
    const auto group = program_.first_operation(work).groups[static_cast<size_t>(program_.rank)];
    program_.steps.push_back(
        {.action = steps::SumStatistics{.work = index, .backward = true, .sums = sums, .group = group},
         .lane = Lane::communication,
         .reads = {sums},
         .writes = {sums}});
    return sums;
  }

  // True when ranks exchange a gradient of this work's inputs. The placement answers, not this rank's part of
  // it, so that all ranks order their messages the same way.
  bool exchanges_input_gradient(const Work& work) const {
    const auto& inputs = program_.first_operation(work).inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!program_.first_operation(work).input_gradients[i]) continue;
      const auto& producer = program_.placement->operations[value(inputs[i]).producer];
      if (producer.kind != Kind::copy && producer.kind != Kind::sum) continue;
      if (value(producer.inputs[0]).layout != value(inputs[i]).layout) return true;
    }
    return false;
  }

  void place_weights(WorkIndex index) {
    const Work& work = program_.works[index];
    Step step = backward_step(work, index, Pass::backward_weights);
    append_located(step.writes, work.partial_gradients);
    // Nobody waits for a gradient that replicas compute; and what they gather for it has until then to
    // arrive.
    if (work.backward_only)
      replicated_.push_back(std::move(step));
    else
      program_.steps.push_back(std::move(step));
    place_gradient_sums(work);
  }

  // True when nothing from `operation` on is computed, on any rank, before the work.
  bool only_moves(OperationIndex operation, WorkIndex work) const {
    const IndexRange between(operation, program_.works[work].operations.front());
    return std::all_of(between.begin(), between.end(), [&](OperationIndex each) {
      const Kind kind = program_.placement->operations[each].kind;
      return kind == Kind::copy || kind == Kind::sum;
    });
  }

  void place_due_weights() {
    if (!weights_due_) return;
    place_weights(weights_due_);
    release_output_gradients(program_.works[weights_due_]);
    weights_due_ = {};
  }

  static bool has_weights_step(const Work& work) {
    return work.task.layer().splits_backward() && any_wanted(work.task.parameter_gradients);
  }

  // The weights' gradient usually comes first, so that its sum travels while the inputs' gradient is
  // computed. Where the inputs' gradient is exchanged, it comes first: the next layer waits for it, and the
  // weights' gradient is computed while it travels.
  void place_steps(WorkIndex index, bool weights_last) {
    Work& work = program_.works[index];
    const bool split = work.task.layer().splits_backward();
    const View sums = work.facts.backward_sums > 0 ? place_sums(index) : View{};
    if (has_weights_step(work) && !weights_last) place_weights(index);
    if (any_wanted(work.task.input_gradients) || !split) {
      Step step = backward_step(work, index, Pass::backward);
      step.as<steps::Compute>()->sums = sums;
      if (sums) step.reads.push_back(sums);
      append_located(step.writes, work.input_gradients);
      if (!split) append_located(step.writes, work.partial_gradients);
      program_.steps.push_back(std::move(step));
      if (!split) place_gradient_sums(work);
    }
    if (weights_last) weights_due_ = index;
  }

  // Once the last layer that uses a parameter has added to its gradient, the gradient is summed over the
  // ranks that hold the same slice, and the parameter updated: on one rank right after the layer, else after
  // the backward pass, so that computing never waits for the sum.
  void place_gradient_sums(const Work& work) {
    for (size_t p = 0; p < work.parameters.size(); ++p) {
      if (!work.task.parameter_gradients[p]) continue;
      const ParameterIndex parameter = work.parameters[p];
      const View passing = passing_gradients_[parameter];
      std::vector<View> gradient;
      append_located(gradient, {passing});
      if (work.partial_gradients[p] && work.partial_gradients[p] != passing) {
        program_.steps.push_back({.action = steps::AccumulateParameter{parameter},
                                  .reads = {work.partial_gradients[p]},
                                  .writes = gradient});
      }
      if (--users_left_[parameter] > 0) continue;
      const RankGroup& group = program_.placement->replicas[parameter][static_cast<size_t>(program_.rank)];
      if (group.size() == 1 || work.backward_only) {
        updates_.push_back({.action = steps::Update{parameter}, .reads = std::move(gradient)});
        continue;
      }
      const auto together = [](Step::Action action) {
        return Step{.action = std::move(action), .lane = Lane::communication};
      };
      switch (program_.first_operation(work).strategy.sync) {
        case GradientSync::allreduce:
        case GradientSync::replicate:
          program_.steps.push_back(together(steps::SumGradient{{parameter}, group}));
          updates_.push_back({.action = steps::Update{parameter}});
          break;
        case GradientSync::server:
          pushes_.push_back(together(steps::ScatterGradient{parameter, group, true}));
          updates_.push_back({.action = steps::Update{parameter}});
          pulls_.push_back(together(steps::GatherParameter{parameter, group, true}));
          break;
        case GradientSync::owner:
          program_.steps.push_back(together(steps::ScatterGradient{parameter, group}));
          updates_.push_back({.action = steps::Update{parameter}});
          updates_.push_back(together(steps::GatherParameter{parameter, group}));
          break;
      }
    }
  }

  // On one rank updates run right after the layer's backward steps.
  void place_local_updates() {
    if (program_.placement->ranks > 1) return;
    for (Step& step : updates_) program_.steps.push_back(std::move(step));
    updates_.clear();
  }

  void place_compute(WorkIndex index) {
    Work& work = program_.works[index];
    const bool weights_last = has_weights_step(work) && exchanges_input_gradient(work);
    work.input_gradients_first = weights_last && any_wanted(work.task.input_gradients);
    for (ValueIndex output : program_.last_operation(work).outputs) {
      const bool held = value(output).layout[program_.rank].has_value();
      work.output_gradients.push_back(held ? complete_gradient(output, work.facts.overwrites_output_gradients)
                                           : View{});
    }
    place_input_gradients(work);
    if (!weights_last) release_output_gradients(work);
    place_parameter_gradients(work);
    place_steps(index, weights_last);
    place_local_updates();
  }

  Program& program_;
  const Network& network_;
  const bool keep_, passing_;
  IndexedVector<ValueIndex, std::vector<View>> contributions_;
  std::map<BufferIndex, int> references_;  // contributions that will still read it
  IndexedVector<ParameterIndex, int> users_left_;
  IndexedVector<ParameterIndex, bool> parameter_written_;
  IndexedVector<ParameterIndex, View> passing_gradients_;    // nowhere: it does not pass
  std::vector<Step> pushes_, replicated_, updates_, pulls_;  // for the end of the pass, in that order
  // Work whose weights' gradient is computed next, after what exchanges its inputs'.
  WorkIndex weights_due_{};
};

}  // namespace

void place_backward(Program& program, const Network& network, bool keep_gradients, bool passing_gradients) {
  BackwardBuilder(program, network, keep_gradients, passing_gradients).run();
}

}  // namespace cortado
