#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cortado {

// What this process is doing, for whoever watches it from another thread (job/rank.h).
struct Activity {
  bool waits = false;  // for other ranks; else it works
  // Those that it waits for; empty: all others.
  std::vector<int> ranks{};
  std::string text = "between two steps";  // "the sum of gradients of layer 'conv1'"
};

// Goes on with every step, message and piece of a message that ends in this process. Any thread; costs next
// to nothing.
inline std::atomic<uint64_t> progress_count = 0;
inline void count_progress() { progress_count.fetch_add(1, std::memory_order_relaxed); }

// While it lives, `tell` says what the process does. Of several the last one made counts.
class ActivityScope {
 public:
  // `tell` is called by the watching thread and must not wait long.
  explicit ActivityScope(std::function<Activity()> tell);
  // A call that waits for other ranks; `text` must outlive it.
  explicit ActivityScope(const char* text, int rank = -1);
  ~ActivityScope();
  ActivityScope(const ActivityScope&) = delete;
  ActivityScope& operator=(const ActivityScope&) = delete;

 private:
  friend Activity current_activity();
  const std::function<Activity()> tell_;
};

Activity current_activity();

}  // namespace cortado
