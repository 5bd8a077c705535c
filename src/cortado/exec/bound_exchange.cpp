#include "cortado/exec/bound_exchange.h"

#include <algorithm>

#include "cortado/base/sum_tree.h"

namespace cortado {

BoundExchange::BoundExchange(const Movement& movement, std::byte* from, std::byte* to, std::byte* staging,
                             Communicator& communicator, int tag)
    : movement_(movement), rank_(communicator.rank()) {
  if (movement.from) from_ = {*movement.from, from, movement.from_type};
  if (movement.to) to_ = {*movement.to, to, movement.to_type};
  if (!movement.talks()) return;
  if (movement.group.empty()) {
    bind_messages(staging, communicator, tag);
  } else {
    bind_collective(staging, communicator);
  }
}

void BoundExchange::bind_messages(std::byte* staging, Communicator& communicator, int tag) {
  std::vector<MessagePart> sends, receives;
  const ElementType type = movement_.type();
  auto pack = [&](const Movement::Part& part, std::vector<TensorPart>& packed) {
    packed.push_back({part.box, staging, type});
    staging += bytes_of(part.box.shape(), type).count;
    return packed.back().memory;
  };
  for (const auto& part : movement_.sends) {
    std::byte* memory = movement_.direct_send(part) ? from_.at(part.box) : pack(part, sends_);
    sends.push_back({part.peer, memory, part.box.shape().size(), type});
  }
  for (const auto& part : movement_.receives) {
    std::byte* memory = movement_.direct_receive(part) ? to_.at(part.box) : pack(part, receives_);
    receives.push_back({part.peer, memory, part.box.shape().size(), type});
  }
  transmission_ = communicator.exchange(std::move(sends), std::move(receives), tag);
}

// The collective's chunks lie one after the other. An allgather uses the tensor's own memory where they lie
// so there; else they lie in `staging`.
void BoundExchange::bind_collective(std::byte* staging, Communicator& communicator) {
  const bool packed = movement_.packed() > 0;
  const ElementType type = movement_.type();
  std::byte* const chunks = packed ? staging : to_.memory ? to_.memory : from_.memory;
  std::byte* memory = chunks;
  std::vector<int64_t> counts;
  for (size_t i = 0; i < movement_.chunks.size(); ++i) {
    const auto& chunk = movement_.chunks[i];
    const bool own = movement_.group[i] == communicator.rank();
    counts.push_back(chunk ? chunk->shape().size() : 0);
    if (chunk && packed) {
      // For a sum this rank packs all chunks and gets its own back; else it packs its own and gets the
      // others.
      if (own || movement_.sums) sends_.push_back({*chunk, memory, type});
      if (own == movement_.sums) receives_.push_back({*chunk, memory, type});
    }
    memory += bytes_of(counts.back(), type).count;
  }
  const ElementPointer values(chunks, type);
  transmission_ = movement_.sums ? communicator.reduce_scatter(movement_.group, values, std::move(counts))
                                 : communicator.allgather(movement_.group, values, std::move(counts));
}

void BoundExchange::start() {
  for (const TensorPart& packed : sends_) copy_box(from_, packed, packed.box);
  const bool collective = !movement_.group.empty();
  // In an allgather this rank's own chunk does not come back: copy it. In a sum it is part of what comes
  // back.
  if (collective && !movement_.sums && to_.memory && movement_.local) copy_box(from_, to_, *movement_.local);
  if (transmission_) transmission_->start();
  if (!to_.memory || (collective && !movement_.sums)) return;
  // Copy what this rank has already while the messages travel.
  const bool fills = movement_.local == movement_.to;
  if (movement_.sums && !fills)
    std::fill_n(to_.memory, bytes_of(to_.box.shape(), to_.type).count, std::byte{});
  if (movement_.local && !collective) copy_box(from_, to_, *movement_.local);
}

bool BoundExchange::test() {
  if (transmission_ && !transmission_->test()) return false;
  arrive();
  return true;
}

// Adds equal boxes in the fixed tree over the ranks that have them.
void BoundExchange::arrive_in_tree() {
  struct Addend {
    int peer;
    TensorPart part;
  };
  std::vector<Addend> addends;
  std::vector<std::byte> own;
  if (movement_.local) {
    own.resize(static_cast<size_t>(bytes_of(movement_.local->shape(), movement_.type()).count));
    addends.push_back({rank_, {*movement_.local, own.data(), movement_.type()}});
    copy_box(from_, addends.back().part, *movement_.local);
  }
  for (size_t i = 0; i < receives_.size(); ++i) addends.push_back({movement_.receives[i].peer, receives_[i]});
  std::ranges::stable_sort(addends, {}, &Addend::peer);
  while (!addends.empty()) {
    const Box box = addends.front().part.box;
    const auto others =
        std::ranges::stable_partition(addends, [&](const Addend& addend) { return addend.part.box == box; });
    const std::vector<Addend> same(addends.begin(), others.begin());
    addends.erase(addends.begin(), others.begin());
    sum_in_tree(tree_shares(static_cast<int>(same.size())),
                [&](size_t i, size_t j) { add_box(same[j].part, same[i].part, box); });
    copy_box(same.front().part, to_, box);
  }
}

// Adds in the order of the senders, so that sums are the same in every run.
void BoundExchange::arrive() {
  if (movement_.sums && movement_.in_tree) return arrive_in_tree();
  const bool adds = movement_.sums && movement_.group.empty();
  for (const TensorPart& packed : receives_)
    adds ? add_box(packed, to_, packed.box) : copy_box(packed, to_, packed.box);
}

}  // namespace cortado
