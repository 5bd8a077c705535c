#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "cortado/base/random.h"

namespace cortado {

// Uniform integer in [0, count), count < 2^32.
inline int64_t random_below(const RandomStream& stream, uint64_t index, uint32_t draw, int64_t count) {
  return static_cast<int64_t>(stream.bits(index, draw) * static_cast<uint64_t>(count) >> 32);
}

// A random permutation of [0, count), a pure function of (stream, epoch, count).
std::vector<int64_t> shuffled_order(RandomStream stream, int64_t epoch, int64_t count);

// The order of records of every epoch, made when first asked for. Any thread may ask.
class EpochOrder {
 public:
  using Make = std::function<std::vector<int64_t>(int64_t epoch)>;
  EpochOrder(int64_t records, Make make) : records_(records), make_(std::move(make)) {}
  // The record at stream position `position`.
  int64_t at(int64_t position);

 private:
  int64_t records_ = 0;
  Make make_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<int64_t>> epochs_;  // the two latest in use
};

}  // namespace cortado
