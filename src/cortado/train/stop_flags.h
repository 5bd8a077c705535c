#pragma once

#include <atomic>

namespace cortado {

// What is asked of a training while it runs; it looks here between iterations. Any thread, and signal
// handlers, may set them.
struct StopFlags {
  std::atomic<bool> stop = false, snapshot = false;
  static_assert(std::atomic<bool>::is_always_lock_free);
};

}  // namespace cortado
