#include "cortado/program/passes.h"

namespace cortado {
namespace {

using Operation = Placement::Operation;

Movement movement_of(const Program& program, const Operation& operation) {
  const Placement::Value& moved = program.placement->values[operation.inputs[0]];
  const Layout& from = moved.layout;
  const Layout& to = program.placement->values[operation.outputs[0]].layout;
  const ElementType sum_type = program.placement->values[operation.outputs[0]].type;
  Movement movement = operation.kind == Operation::Kind::copy
                          ? copy_movement(from, to, program.rank, moved.type)
                          : sum_movement(from, to, program.rank, moved.type, sum_type);
  if (program.placement->reproducible) {
    movement.in_tree = true;
    movement.group = {};
    movement.chunks.clear();
  }
  return movement;
}

}  // namespace

void make_works(Program& program, const Network& network, const TaskOracle& oracle, bool fuse) {
  const auto& operations = program.placement->operations;
  IndexedVector<OperationIndex, bool> made(operations.size(), false);
  for (OperationIndex index : indices(operations)) {
    const Operation& operation = operations[index];
    if (made[index]) continue;
    if (operation.kind == Operation::Kind::compute) {
      if (!operation.domain[program.rank]) continue;
      program.works.push_back(make_chain(program, network, oracle, index, fuse));
      for (OperationIndex member : program.works.back().operations) made[member] = true;
      continue;
    }
    Work work{.kind = operation.kind, .operations = {index}};
    work.backward_only = operation.gradients == Operation::Gradients::only;
    if (operation.node) work.nodes = {operation.node};
    if (operation.kind != Operation::Kind::source) work.movement = movement_of(program, operation);
    if (operation.kind == Operation::Kind::source || !work.movement.nothing())
      program.works.push_back(std::move(work));
  }
}

}  // namespace cortado
