#include "cortado/base/error.h"
#include "cortado/layers/precision.h"
#include "cortado/program/passes.h"

namespace cortado {
namespace {

using Operation = Placement::Operation;

// The longest chain of operations from `first` on in which each one's only output feeds only the next one,
// without a move.
std::vector<OperationIndex> chain_from(const Placement& placement, OperationIndex first) {
  std::vector<OperationIndex> chain;
  for (OperationIndex next = first; next; next = placement.operations[next].follower) chain.push_back(next);
  return chain;
}

Task chain_task(const Program& program, const Network& network, const std::vector<OperationIndex>& chain) {
  const Placement& placement = *program.placement;
  Task task;
  const Operation &first = placement.operations[chain.front()], &last = placement.operations[chain.back()];
  task.phase = network.nodes()[first.node].phase;  // what follows in a chain is the same in all phases
  auto shape_of = [&](ValueIndex value) { return network.tensors()[placement.values[value].tensor].shape; };
  task.domain_box = *first.domain[program.rank];
  for (ValueIndex value : first.inputs) {
    task.inputs.push_back(shape_of(value));
    task.input_types.push_back(placement.values[value].type);
  }
  for (size_t i = 0; i < first.inputs.size(); ++i) {
    const auto& read = first.reads[i][program.rank];
    const Box none = first.layer->input_box(task.inputs, static_cast<int>(i), 0, task.domain_box);
    task.input_boxes.push_back(read ? *read : none);  // `none`: this part of the output needs nothing of it
    task.input_gradients.push_back(first.input_gradients[i] && read);
  }
  for (ValueIndex value : last.outputs) {
    task.outputs.push_back(shape_of(value));
    task.output_types.push_back(placement.values[value].type);
    task.output_boxes.push_back(*placement.values[value].layout[program.rank]);
  }
  task.cut = first.strategy.config.devices.size() > 1;
  task.local_sums = first.strategy.local_batch_norm;
  task.f32_products = first.strategy.precision == Precision::f32 &&
                      first.layer->output_rule(0) == OutputRule::bf16 && !task.all_f32();
  for (OperationIndex index : chain) {
    const Operation& operation = placement.operations[index];
    task.layers.push_back(operation.layer);
    for (ParameterIndex parameter : operation.parameters) {
      const auto& info = network.parameters()[parameter];
      const bool here = operation.gradients != Operation::Gradients::elsewhere;
      task.parameter_gradients.push_back(info.wants_gradient && here);
      task.parameter_type = info.type;
      task.canonical_parameters |= info.users.size() > 1;
    }
  }
  return task;
}

Work make_work(const Program& program, const std::vector<OperationIndex>& chain, Task task,
               const TaskFacts& facts) {
  Work work;
  work.task = std::move(task);
  work.facts = facts;
  work.operations = chain;
  work.backward_only = program.placement->operations[chain.front()].gradients == Operation::Gradients::only;
  for (OperationIndex index : chain) {
    const Operation& operation = program.placement->operations[index];
    work.nodes.push_back(operation.node);
    work.parameters.insert(work.parameters.end(), operation.parameters.begin(), operation.parameters.end());
  }
  work.partial_gradients.resize(work.parameters.size());
  return work;
}

}  // namespace

Work make_chain(const Program& program, const Network& network, const TaskOracle& oracle,
                OperationIndex first, bool fuse) {
  auto chain = fuse ? chain_from(*program.placement, first) : std::vector<OperationIndex>{first};
  for (; chain.size() > 1; chain.pop_back()) {
    Task task = chain_task(program, network, chain);
    if (auto facts = oracle(task)) return make_work(program, chain, std::move(task), *facts);
  }
  Task task = chain_task(program, network, chain);
  std::optional<TaskFacts> facts;
  try {
    facts = oracle(task);
  } catch (const UserError& error) {
    const auto& node = network.nodes()[program.placement->operations[first].node];
    throw UserError(fmt::format("{}: layer '{}': {}", node.where.text(), node.name, error.what()));
  }
  ensure(facts.has_value(), "the oracle refused a single layer");
  return make_work(program, chain, std::move(task), *facts);
}

}  // namespace cortado
