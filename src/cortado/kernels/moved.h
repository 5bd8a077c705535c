#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cortado {

// So many bytes after `memory`; null where that is.
template <typename T>
T* moved(T* memory, int64_t bytes) {
  if (!memory) return nullptr;
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(memory) + bytes);
}

}  // namespace cortado
