#include "cortado/program/passes.h"

namespace cortado {

Step exchange_step(Program& program, int index, bool backward, int from, int to) {
  const Work& work = program.works[index];
  const Movement movement = backward ? adjoint(work.movement) : work.movement;
  Step step{.kind = Step::Kind::exchange, .lane = Lane::communication, .work = index, .backward = backward};
  step.group = movement.group;
  const auto operations = static_cast<int>(program.placement->operations.size());
  const int second_half = work.half && work.half->which == 1 ? operations : 0;
  step.tag = 2 * (work.operations[0] + second_half) + (backward ? 1 : 0);
  if (from >= 0) step.reads = {from};
  if (to >= 0) step.writes = {to};
  const Bytes packed{movement.packed() * static_cast<int64_t>(sizeof(float))};
  if (packed.count > 0) {
    step.scratch = program.add_buffer("messages", Buffer::Kind::staging, packed);
    step.writes.push_back(step.scratch);
  }
  return step;
}

}  // namespace cortado
