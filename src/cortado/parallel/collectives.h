#pragma once

#include <cstdint>

namespace cortado {

// Floats. A smaller tensor that one rank has goes to others by messages, which are there sooner than what is
// handed on from rank to rank.
inline constexpr int64_t smallest_broadcast = 1024;

}  // namespace cortado
