#pragma once

#include <chrono>

#include "cortado/base/units.h"

namespace cortado {

inline Seconds seconds_since(std::chrono::steady_clock::time_point begin,
                             std::chrono::steady_clock::time_point end = std::chrono::steady_clock::now()) {
  return {std::chrono::duration<double>(end - begin).count()};
}

}  // namespace cortado
