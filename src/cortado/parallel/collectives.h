#pragma once

#include <cstdint>

namespace cortado {

// Floats. A smaller tensor goes from the rank that has it to others by messages, which arrive sooner than
// what is handed on from rank to rank.
inline constexpr int64_t smallest_broadcast = 1024;

}  // namespace cortado
