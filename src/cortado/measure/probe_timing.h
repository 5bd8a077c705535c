#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "cortado/base/element_type.h"
#include "cortado/base/seconds_since.h"
#include "cortado/comm/communicator.h"

// What probes of devices and of messages share: taking times, and moving messages.
namespace cortado::probes {

inline constexpr int64_t float_bytes = size_of(ElementType::f32);
inline constexpr int64_t longest_message = int64_t{1} << 22;  // floats: 16 MiB

inline double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return seconds_since(start).count;
}

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

inline int times_in(double duration, double once, int least, int most) {
  return static_cast<int>(std::clamp(duration / std::max(once, 1e-9), double(least), double(most)));
}

// Moves a message as the Executor's communication lane does.
inline void finish(Transmission& transmission) {
  transmission.start();
  while (!transmission.test()) std::this_thread::yield();
}

}  // namespace cortado::probes
