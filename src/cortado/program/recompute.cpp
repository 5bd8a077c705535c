#include "cortado/program/recompute.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cortado/program/passes.h"
#include "cortado/program/tags.h"

namespace cortado {
namespace {

using Operation = Placement::Operation;
using Kind = Operation::Kind;

// Collects what is needed once more, what it needs first.
class Demand {
 public:
  explicit Demand(const Placement& placement)
      : placement_(placement), met_(placement.operations.size(), false) {}

  void add(OperationIndex index, std::vector<OperationIndex>& list) {
    if (!placement_.operations[index].recomputed || met_[index]) return;
    met_[index] = true;
    add_inputs(index, list);
    list.push_back(index);
  }
  void add_inputs(OperationIndex index, std::vector<OperationIndex>& list) {
    for (ValueIndex input : placement_.operations[index].inputs) add(placement_.values[input].producer, list);
  }

 private:
  const Placement& placement_;
  IndexedVector<OperationIndex, bool> met_;
};

bool has_backward(const Operation& operation, const Network& network) {
  return any_wanted(operation.input_gradients) ||
         std::ranges::any_of(operation.parameters, [&](ParameterIndex parameter) {
           return network.parameters()[parameter].wants_gradient;
         });
}

}  // namespace

std::vector<Recomputation> recomputations_of(const Placement& placement, const Network& network) {
  std::vector<Recomputation> all;
  Demand demand(placement);
  for (OperationIndex index(placement.operations.size() - 1); index; --index) {
    const Operation& operation = placement.operations[index];
    if (operation.kind != Kind::compute || operation.gradients == Operation::Gradients::only ||
        !has_backward(operation, network))
      continue;
    Recomputation one{.before = index, .operations = {}};
    demand.add(index, one.operations);
    demand.add_inputs(index, one.operations);
    std::ranges::sort(one.operations);
    if (!one.operations.empty()) all.push_back(std::move(one));
  }
  return all;
}

namespace {

// Puts the steps that run again into the backward pass.
class Inserter {
 public:
  Inserter(Program& program, std::vector<Recomputation> todo)
      : program_(program), todo_(std::move(todo)), steps_(std::move(program.steps)) {
    for (StepIndex s(0); s.value() < program.forward_end; ++s) {
      const Step& step = steps_[s];
      if (step.is<steps::Exchange>() || step.runs(Pass::forward))
        steps_of_[program.works[step.work()].operations.back()].push_back(s);
    }
  }

  void run() {
    const StepIndex tail = begin_of_tail();
    program_.steps.clear();
    for (StepIndex s : indices(steps_)) {
      const bool backward = s.value() > program_.forward_end;
      if (s == tail) insert_down_to(OperationIndex(0));
      if (backward && s < tail && is_placed(steps_[s]))
        insert_down_to(program_.works[steps_[s].work()].operations.front());
      program_.steps.push_back(steps_[s]);
    }
    insert_down_to(OperationIndex(0));
    prune();
  }

 private:
  // Says whether the step has its place by the order of operations, which is the same on all ranks.
  bool is_placed(const Step& step) const {
    return step.work() && !(step.is<steps::Compute>() && program_.works[step.work()].backward_only);
  }

  // The updates and what owners send come last, and whole gradients of replicas.
  StepIndex begin_of_tail() const {
    StepIndex tail = steps_.end_index();
    for (StepIndex s(steps_.size() - 1); s.value() > program_.forward_end; --s) {
      const Step& step = steps_[s];
      const bool whole_gradient = step.is<steps::Compute>() && program_.works[step.work()].backward_only;
      if (!step.is<steps::Update>() && !step.is<steps::GatherParameter>() && !whole_gradient) break;
      tail = s;
    }
    return tail;
  }

  void insert_down_to(OperationIndex operation) {
    for (; next_ < todo_.size() && todo_[next_].before >= operation; ++next_)
      for (OperationIndex again : todo_[next_].operations)
        for (StepIndex s : steps_of_[again]) program_.steps.push_back(once_more(steps_[s]));
  }

  // The same step with scratch memory, and a tag, of its own.
  Step once_more(const Step& first) {
    Step step{.action = first.action, .lane = first.lane, .reads = first.reads, .writes = first.writes};
    const auto replace = [&](View& view) {
      if (!view) return;
      const Buffer& old = program_.buffers[view.buffer];
      const View fresh = program_.add_buffer(old.name, old.kind, old.size, old.type);
      std::ranges::replace(step.writes, view, fresh);
      view = fresh;
    };
    if (auto* compute = step.as<steps::Compute>()) {
      compute->again = true;
      replace(compute->scratch);
    }
    if (auto* exchange = step.as<steps::Exchange>()) {
      exchange->again = true;
      exchange->tag = MessageTags(*program_.placement).exchange_again(exchange->tag);
      replace(exchange->staging);
    }
    return step;
  }

  // Removes computing of which nobody here reads the results. Messages stay: other ranks expect them.
  void prune() {
    std::set<BufferIndex> read;
    IndexedVector<StepIndex, bool> dead(program_.steps.size(), false);
    for (StepIndex s(program_.steps.size() - 1); s.value() > program_.forward_end; --s) {
      const Step& step = program_.steps[s];
      const auto wanted = [&](const View& view) { return read.contains(view.buffer); };
      dead[s] = step.is<steps::Compute>() && step.again() && std::ranges::none_of(step.writes, wanted);
      if (dead[s]) continue;
      for (const View& view : step.reads) read.insert(view.buffer);
    }
    IndexedVector<StepIndex, Step> kept;
    for (StepIndex s : indices(program_.steps))
      if (!dead[s]) kept.push_back(std::move(program_.steps[s]));
    program_.steps = std::move(kept);
  }

  Program& program_;
  const std::vector<Recomputation> todo_;
  size_t next_ = 0;
  IndexedVector<StepIndex, Step> steps_;
  std::map<OperationIndex, std::vector<StepIndex>> steps_of_;  // forward, by the operation that they end
};

}  // namespace

void recompute(Program& program, const Network& network) {
  std::vector<Recomputation> todo = recomputations_of(*program.placement, network);
  if (!todo.empty()) Inserter(program, std::move(todo)).run();
}

}  // namespace cortado
