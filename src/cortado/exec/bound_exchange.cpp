#include "cortado/exec/bound_exchange.h"

#include <algorithm>

namespace cortado {
namespace {

// Where the box begins in the dense memory of its part.
float* begin_of(const TensorPart& part, const Box& box) {
  const Strides strides = channels_last_strides(part.box.shape());
  float* memory = part.memory;
  for (int axis = 0; axis < box.rank(); ++axis)
    memory += (box[axis].begin - part.box[axis].begin) * strides[axis];
  return memory;
}

}  // namespace

BoundExchange::BoundExchange(const Movement& movement, float* from, float* to, float* staging,
                             Communicator& communicator, int tag)
    : movement_(movement) {
  if (movement.from) from_ = {*movement.from, from};
  if (movement.to) to_ = {*movement.to, to};
  std::vector<MessagePart> sends, receives;
  auto pack = [&](const Movement::Part& part, std::vector<Packed>& packed) {
    packed.push_back({part.box, staging});
    staging += part.box.shape().size();
    return packed.back().memory;
  };
  for (const auto& part : movement.sends) {
    float* memory = movement.direct_send(part) ? begin_of(from_, part.box) : pack(part, sends_);
    sends.push_back({part.peer, memory, part.box.shape().size()});
  }
  for (const auto& part : movement.receives) {
    float* memory = movement.direct_receive(part) ? begin_of(to_, part.box) : pack(part, receives_);
    receives.push_back({part.peer, memory, part.box.shape().size()});
  }
  if (movement.talks()) transmission_ = communicator.exchange(std::move(sends), std::move(receives), tag);
}

void BoundExchange::start() {
  for (const Packed& packed : sends_) copy_box(from_, {packed.box, packed.memory}, packed.box);
  if (transmission_) transmission_->start();
  if (!to_.memory) return;
  // What this rank has itself, while the messages travel.
  const bool fills = movement_.local == movement_.to;
  if (movement_.sums && !fills) std::fill_n(to_.memory, to_.box.shape().size(), 0.0f);
  if (movement_.local) copy_box(from_, to_, *movement_.local);
}

bool BoundExchange::test() {
  if (transmission_ && !transmission_->test()) return false;
  arrive();
  return true;
}

// In the order of the senders, so that sums are the same in every run.
void BoundExchange::arrive() {
  for (const Packed& packed : receives_) {
    const TensorPart part{packed.box, packed.memory};
    movement_.sums ? add_box(part, to_, packed.box) : copy_box(part, to_, packed.box);
  }
}

}  // namespace cortado
