#pragma once

#include <cstddef>
#include <cstdint>

#include "cortado/base/units.h"

// Memory that a kernel gives a library of a GPU for itself. cuBLASLt takes none off a boundary of 256 bytes,
// and arenas keep one of 64.
namespace cortado::gpu {

inline constexpr int64_t workspace_boundary = 256;

// What a kernel reserves for a workspace of so many bytes.
inline Bytes workspace_bytes(int64_t bytes) { return {bytes == 0 ? 0 : bytes + workspace_boundary}; }

// The workspace in what was reserved.
inline std::byte* workspace_in(std::byte* reserved) {
  const auto past = reinterpret_cast<uintptr_t>(reserved) % workspace_boundary;
  return past == 0 ? reserved : reserved + (workspace_boundary - static_cast<int64_t>(past));
}

}  // namespace cortado::gpu
