#include <algorithm>
#include <iterator>

#include "cortado/base/error.h"
#include "cortado/program/passes.h"
#include "cortado/program/tags.h"

namespace cortado {

void append_located(std::vector<View>& views, const std::vector<View>& more) {
  std::ranges::copy_if(more, std::back_inserter(views),
                       [](const View& view) { return static_cast<bool>(view); });
}

Step exchange_step(Program& program, WorkIndex index, bool backward, const View& from, const View& to) {
  const Work& work = program.works[index];
  const Movement movement = backward ? adjoint(work.movement) : work.movement;
  steps::Exchange exchange{
      .work = index, .backward = backward, .from = from, .to = to, .group = movement.group};
  ensure(work.part.count <= MessageTags::halves, "tags of exchanges differ");
  exchange.tag = MessageTags(*program.placement).exchange(work.operations[0], work.part.number, backward);
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
