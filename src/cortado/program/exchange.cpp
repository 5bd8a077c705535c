#include <algorithm>
#include <iterator>

#include "cortado/base/error.h"
#include "cortado/program/passes.h"

namespace cortado {

void append_located(std::vector<View>& views, const std::vector<View>& more) {
  std::ranges::copy_if(more, std::back_inserter(views),
                       [](const View& view) { return static_cast<bool>(view); });
}

Step exchange_step(Program& program, WorkIndex index, bool backward, const View& from, const View& to) {
  const Work& work = program.works[index];
  const Movement movement = backward ? adjoint(work.movement) : work.movement;
  const auto operations = static_cast<int>(program.placement->operations.size());
  steps::Exchange exchange{
      .work = index, .backward = backward, .from = from, .to = to, .group = movement.group};
  exchange.tag = 2 * (work.operations[0].value() + work.part.number * operations) + (backward ? 1 : 0);
  ensure(work.part.count <= 2 && exchange.tag < tags_of_operation * operations, "tags of exchanges differ");
  Step step{.lane = Lane::communication};
  if (from) step.reads = {from};
  if (to) step.writes = {to};
  const Bytes packed = bytes_of(movement.packed(), movement.type());
  if (packed.count > 0) {
    exchange.staging = program.add_buffer("messages", Buffer::Kind::staging, packed, movement.type());
    step.writes.push_back(exchange.staging);
  }
  step.action = std::move(exchange);
  return step;
}

}  // namespace cortado
