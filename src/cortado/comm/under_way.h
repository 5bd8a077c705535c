#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

namespace cortado {

// Counts the bytes that all rings of a rank have sent and that have not arrived. Over a network they are
// limited to what keeps the link busy. Else a small message that somebody waits for (a layer's statistics in
// the backward pass) would queue at the end of megabytes of gradients. Segments that arrive early raise the
// limit, those that arrive late lower it.
//
// A ring counts once the neighbour that it sends to has begun it, too. Until then its segments take nothing
// of the link, and the neighbour may be waiting for them.
class UnderWay {
 public:
  using Clock = std::chrono::steady_clock;

  // Sets limits, in bytes; else there is none.
  void limit(int64_t segment) {
    segment_ = segment;
    limit_ = least * segment;
  }
  // Ranks may find different rings most urgent and wait for one another. When nothing has arrived for a
  // while, the limit no longer holds.
  bool may_send() const { return bytes_ < limit_ || Clock::now() - last_.load() > patience; }
  // The same for all rings but the one that is needed soonest, which goes first.
  bool others_may_send() const { return !urgent_waits_ && may_send(); }
  // Whether the ring that is needed soonest still has segments that it may not send yet.
  void urgent_waits(bool waits) { urgent_waits_ = waits; }
  void add(int64_t bytes) { bytes_ += bytes; }
  // A segment that was under way since `sent`.
  void arrived(Clock::time_point sent) {
    last_ = Clock::now();
    if (segment_ == 0) return;
    const auto took = last_.load() - sent;
    if (took < early) limit_ = std::min(limit_ + segment_, most * segment_);
    if (took > late) limit_ = std::max(limit_ - segment_, least * segment_);
  }

 private:
  static constexpr int64_t least = 2, most = 16;  // segments; least: one arrives, one is on its way
  static constexpr std::chrono::microseconds early{800}, late{1500};
  static constexpr std::chrono::milliseconds patience{100};
  int64_t segment_ = 0;
  std::atomic<int64_t> limit_ = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> bytes_ = 0;
  std::atomic<bool> urgent_waits_ = false;
  std::atomic<Clock::time_point> last_ = Clock::now();
};

}  // namespace cortado
