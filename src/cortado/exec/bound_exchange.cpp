#include "cortado/exec/bound_exchange.h"

#include <algorithm>
#include <utility>

#include "cortado/base/error.h"
#include "cortado/base/sum_tree.h"

namespace cortado {

BoundExchange::BoundExchange(const Movement& movement, std::byte* from, std::byte* to, std::byte* staging,
                             std::vector<Carrier> carriers, int rank, int tag, device::Queue* queue)
    : movement_(movement), carriers_(std::move(carriers)), rank_(rank), queue_(queue) {
  ensure(!queue_ || !(movement.sums && movement.in_tree), "a device adds in no tree");
  if (movement.from) from_ = {*movement.from, from, movement.from_type};
  if (movement.to) to_ = {*movement.to, to, movement.to_type};
  if (!movement.talks()) return;
  if (is_collective()) {
    bind_collective(staging);
  } else {
    bind_messages(staging, tag);
  }
}

const Carrier& BoundExchange::carrier_of(int peer) const {
  for (const Carrier& carrier : carriers_)
    if (!carrier.takes || carrier.takes(peer)) return carrier;
  throw InternalError("an exchange has a carrier for each peer");
}

// Returns the memory that travels for this part of the exchange's own, and notes what is to be copied.
void* BoundExchange::travels(const Carrier& carrier, std::byte* memory, Bytes size,
                             std::vector<Run>& elsewhere) {
  if (!carrier.in_place_of) return memory;
  elsewhere.push_back({memory, size});
  return carrier.in_place_of(memory);
}

void BoundExchange::bind_messages(std::byte* staging, int tag) {
  const ElementType type = movement_.type();
  auto pack = [&](const Movement::Part& part, std::vector<TensorPart>& packed) {
    packed.push_back({part.box, staging, type});
    staging += bytes_of(part.box.shape(), type).count;
    return packed.back().memory;
  };
  std::vector<std::vector<MessagePart>> sends(carriers_.size()), receives(carriers_.size());
  const auto bind = [&](const Movement::Part& part, std::byte* memory, auto& parts, auto& elsewhere) {
    const Carrier& carrier = carrier_of(part.peer);
    void* const there = travels(carrier, memory, bytes_of(part.box.shape(), type), elsewhere);
    parts[static_cast<size_t>(&carrier - carriers_.data())].push_back(
        {part.peer, there, part.box.shape().size(), type});
  };
  for (const auto& part : movement_.sends)
    bind(part, movement_.direct_send(part) ? from_.at(part.box) : pack(part, sends_), sends, sent_elsewhere_);
  for (const auto& part : movement_.receives)
    bind(part, movement_.direct_receive(part) ? to_.at(part.box) : pack(part, receives_), receives,
         received_elsewhere_);
  for (size_t i = 0; i < carriers_.size(); ++i) {
    if (sends[i].empty() && receives[i].empty()) continue;
    transmissions_.push_back(
        carriers_[i].communicator->exchange(std::move(sends[i]), std::move(receives[i]), tag));
    by_links_.push_back(carriers_[i].by_links);
  }
}

// The collective's chunks lie one after the other. An allgather uses the tensor's own memory where they lie
// so there; else they lie in `staging`.
void BoundExchange::bind_collective(std::byte* staging) {
  const bool packed = movement_.packed() > 0;
  const ElementType type = movement_.type();
  std::byte* const chunks = packed ? staging : to_.memory ? to_.memory : from_.memory;
  std::byte *memory = chunks, *mine = chunks;
  Bytes my_size;
  std::vector<int64_t> counts;
  for (size_t i = 0; i < movement_.chunks.size(); ++i) {
    const auto& chunk = movement_.chunks[i];
    const bool own = movement_.group[i] == rank_;
    counts.push_back(chunk ? chunk->shape().size() : 0);
    if (chunk && packed) {
      // For a sum this rank packs all chunks and gets its own back; else it packs its own and gets the
      // others.
      if (own || movement_.sums) sends_.push_back({*chunk, memory, type});
      if (own == movement_.sums) receives_.push_back({*chunk, memory, type});
    }
    const Bytes size = bytes_of(counts.back(), type);
    if (own) mine = memory, my_size = size;
    memory += size.count;
  }
  const std::vector<int>& group = movement_.group;
  const Carrier& carrier = carrier_of(group.front() == rank_ ? group.back() : group.front());
  const Bytes all{memory - chunks};
  const ElementPointer values(
      travels(carrier, chunks, all, movement_.sums ? sent_elsewhere_ : received_elsewhere_), type);
  travels(carrier, mine, my_size, movement_.sums ? received_elsewhere_ : sent_elsewhere_);
  by_links_.push_back(carrier.by_links);
  transmissions_.push_back(movement_.sums
                               ? carrier.communicator->reduce_scatter(group, values, std::move(counts))
                               : carrier.communicator->allgather(group, values, std::move(counts)));
}

void BoundExchange::copy(const TensorPart& from, const TensorPart& to, const Box& box) const {
  queue_ ? launch_copy(*queue_, from, to, box) : copy_box(from, to, box);
}

void BoundExchange::add(const TensorPart& from, const TensorPart& to, const Box& box) const {
  queue_ ? launch_add(*queue_, from, to, box) : add_box(from, to, box);
}

void BoundExchange::start() {
  pack();
  send(false);
  keep_own();
}

bool BoundExchange::test() {
  if (!arrived()) return false;
  unpack();
  return true;
}

// In an allgather this rank's own chunk does not come back: copies it. In a sum it is part of what comes
// back.
void BoundExchange::pack() {
  for (const TensorPart& packed : sends_) copy(from_, packed, packed.box);
  if (is_collective() && !movement_.sums && to_.memory && movement_.local) copy(from_, to_, *movement_.local);
}

void BoundExchange::send(bool by_links) {
  for (size_t i = 0; i < transmissions_.size(); ++i)
    if (by_links_[i] == by_links) transmissions_[i]->start();
}

void BoundExchange::keep_own() {
  if (!to_.memory || (is_collective() && !movement_.sums)) return;
  const bool fills = movement_.local == movement_.to;
  if (movement_.sums && !fills) {
    queue_ ? launch_zero(*queue_, to_)
           : void(std::fill_n(to_.memory, bytes_of(to_.box.shape(), to_.type).count, std::byte{}));
  }
  if (movement_.local && !is_collective()) copy(from_, to_, *movement_.local);
}

bool BoundExchange::arrived() {
  bool all = true;
  for (auto& transmission : transmissions_) all = transmission->test() && all;
  return all;
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
void BoundExchange::unpack() {
  if (movement_.sums && movement_.in_tree) return arrive_in_tree();
  const bool adds = movement_.sums && !is_collective();
  for (const TensorPart& packed : receives_)
    adds ? add(packed, to_, packed.box) : copy(packed, to_, packed.box);
}

}  // namespace cortado
