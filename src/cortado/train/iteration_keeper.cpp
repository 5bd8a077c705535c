#include "cortado/train/iteration_keeper.h"

#include <algorithm>
#include <utility>

#include "cortado/kernels/arrays.h"

namespace cortado {

IterationKeeper::IterationKeeper(int64_t iteration, std::vector<Updated> updated,
                                 std::vector<Written> written, Positions positions)
    : began_(iteration), written_(std::move(written)), agreed_(iteration) {
  for (Updated& of : updated) {
    const EntryIndex entry = of.entry;
    slots_[entry] = {std::move(of), nullptr, iteration};
  }
  end_iteration(iteration, std::move(positions));
}

std::unique_lock<std::mutex> IterationKeeper::before_update(EntryIndex entry, int64_t iteration) {
  std::unique_lock lock(changing_);
  moving_.wait(lock, [&] { return !still_; });
  Slot& slot = slots_.at(entry);
  const int64_t elements = slot.of.elements;
  // Memory that is not touched before, so that the compute threads touch it first.
  if (!slot.before) slot.before.reset(new float[slot.of.arrays.size() * static_cast<size_t>(elements)]);
  float* to = slot.before.get();
  for (const float* array : slot.of.arrays) {
    arrays::copy(to, array, elements);
    to += elements;
  }
  slot.done = iteration + 1;
  return lock;
}

void IterationKeeper::end_iteration(int64_t done, Positions positions) {
  std::unique_lock lock(changing_);
  moving_.wait(lock, [&] { return !still_; });
  End& end = ends_[static_cast<size_t>(done % 2)];
  end.done = done;
  end.positions = std::move(positions);
  end.written.resize(written_.size());
  for (size_t i = 0; i < written_.size(); ++i)
    end.written[i].assign(written_[i].values, written_[i].values + written_[i].elements);
}

void IterationKeeper::agree(int64_t done) {
  const std::lock_guard lock(changing_);
  agreed_ = done;
}

IterationKeeper::Held IterationKeeper::hold_still() {
  const std::lock_guard lock(changing_);
  still_ = true;
  Held held{.began = began_,
            .first = std::min(ends_[0].done, ends_[1].done),
            .last = std::max(ends_[0].done, ends_[1].done),
            .agreed = agreed_};
  if (held.first < 0) held.first = held.last;
  for (const auto& [entry, slot] : slots_) {
    held.first = std::max(held.first, slot.done - (slot.before ? 1 : 0));
    held.last = std::min(held.last, slot.done);
  }
  return held;
}

const float* IterationKeeper::array(EntryIndex entry, int number, int64_t iteration) const {
  if (const auto found = slots_.find(entry); found != slots_.end()) {
    const Slot& slot = found->second;
    const auto at = static_cast<size_t>(number);
    return slot.done == iteration ? slot.of.arrays[at]
                                  : slot.before.get() + at * static_cast<size_t>(slot.of.elements);
  }
  for (size_t i = 0; i < written_.size(); ++i)
    if (written_[i].entry == entry) return end_of(iteration).written[i].data();
  return nullptr;
}

const IterationKeeper::Positions& IterationKeeper::positions(int64_t iteration) const {
  return end_of(iteration).positions;
}

}  // namespace cortado
