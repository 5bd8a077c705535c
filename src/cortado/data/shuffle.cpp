#include "cortado/data/shuffle.h"

#include <numeric>
#include <utility>

namespace cortado {

std::vector<int64_t> shuffled_order(RandomStream stream, int64_t epoch, int64_t count) {
  stream.iteration = static_cast<uint64_t>(epoch);
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = count - 1; i > 0; --i)
    std::swap(order[i], order[random_below(stream, static_cast<uint64_t>(i), 0, i + 1)]);
  return order;
}

int64_t EpochOrder::at(int64_t position) {
  const int64_t epoch = position / records_;
  std::lock_guard lock(mutex_);
  auto found = epochs_.find(epoch);
  if (found == epochs_.end()) {
    if (epochs_.size() == 2)
      epochs_.erase(epoch > epochs_.begin()->first ? epochs_.begin() : std::prev(epochs_.end()));
    found = epochs_.emplace(epoch, make_(epoch)).first;
  }
  return found->second[position % records_];
}

}  // namespace cortado
