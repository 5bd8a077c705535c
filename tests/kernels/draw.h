#pragma once

#include <cstdint>
#include <random>

namespace cortado::check {

// Random numbers of a test's cases.
class Draw {
 public:
  explicit Draw(unsigned seed) : engine_(seed) {}
  int64_t operator()(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % (high - low + 1));
  }
  bool chance(int percent) { return (*this)(1, 100) <= percent; }

 private:
  std::mt19937 engine_;
};

}  // namespace cortado::check
