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
  if (!movement.talks()) return;
  if (movement.group.empty()) {
    bind_messages(staging, communicator, tag);
  } else {
    bind_collective(staging, communicator);
  }
}

void BoundExchange::bind_messages(float* staging, Communicator& communicator, int tag) {
  std::vector<MessagePart> sends, receives;
  auto pack = [&](const Movement::Part& part, std::vector<Packed>& packed) {
    packed.push_back({part.box, staging});
    staging += part.box.shape().size();
    return packed.back().memory;
  };
  for (const auto& part : movement_.sends) {
    float* memory = movement_.direct_send(part) ? begin_of(from_, part.box) : pack(part, sends_);
    sends.push_back({part.peer, memory, part.box.shape().size()});
  }
  for (const auto& part : movement_.receives) {
    float* memory = movement_.direct_receive(part) ? begin_of(to_, part.box) : pack(part, receives_);
    receives.push_back({part.peer, memory, part.box.shape().size()});
  }
  transmission_ = communicator.exchange(std::move(sends), std::move(receives), tag);
}

// The collective's chunks lie one after the other. An allgather uses the tensor's own memory where they lie
// so there; else they lie in `staging`.
void BoundExchange::bind_collective(float* staging, Communicator& communicator) {
  const bool packed = movement_.packed() > 0;
  float* const chunks = packed ? staging : to_.memory ? to_.memory : from_.memory;
  float* memory = chunks;
  std::vector<int64_t> counts;
  for (size_t i = 0; i < movement_.chunks.size(); ++i) {
    const auto& chunk = movement_.chunks[i];
    const bool own = movement_.group[i] == communicator.rank();
    counts.push_back(chunk ? chunk->shape().size() : 0);
    if (chunk && packed) {
      // For a sum this rank packs all chunks and gets its own back; else it packs its own and gets the
      // others.
      if (own || movement_.sums) sends_.push_back({*chunk, memory});
      if (own == movement_.sums) receives_.push_back({*chunk, memory});
    }
    memory += counts.back();
  }
  transmission_ = movement_.sums ? communicator.reduce_scatter(movement_.group, chunks, std::move(counts))
                                 : communicator.allgather(movement_.group, chunks, std::move(counts));
}

void BoundExchange::start() {
  for (const Packed& packed : sends_) copy_box(from_, {packed.box, packed.memory}, packed.box);
  const bool collective = !movement_.group.empty();
  // In an allgather this rank's own chunk does not come back: copy it. In a sum it is part of what comes
  // back.
  if (collective && !movement_.sums && to_.memory && movement_.local) copy_box(from_, to_, *movement_.local);
  if (transmission_) transmission_->start();
  if (!to_.memory || (collective && !movement_.sums)) return;
  // Copy what this rank has already while the messages travel.
  const bool fills = movement_.local == movement_.to;
  if (movement_.sums && !fills) std::fill_n(to_.memory, to_.box.shape().size(), 0.0f);
  if (movement_.local && !collective) copy_box(from_, to_, *movement_.local);
}

bool BoundExchange::test() {
  if (transmission_ && !transmission_->test()) return false;
  arrive();
  return true;
}

// Adds in the order of the senders, so that sums are the same in every run.
void BoundExchange::arrive() {
  for (const Packed& packed : receives_) {
    const TensorPart part{packed.box, packed.memory};
    movement_.sums&& movement_.group.empty() ? add_box(part, to_, packed.box)
                                             : copy_box(part, to_, packed.box);
  }
}

}  // namespace cortado
