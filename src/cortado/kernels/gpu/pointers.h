#pragma once

#include <algorithm>
#include <vector>

namespace cortado::gpu {

inline constexpr size_t most_pointers = 64;

// Pointers that an element takes along; at most most_pointers.
template <typename T>
struct Pointers {
  T* of[most_pointers];
  int count;
};
template <typename T, typename Given>
Pointers<T> pointers(const std::vector<Given>& given) {
  Pointers<T> result{};
  std::ranges::copy(given, result.of);
  result.count = static_cast<int>(given.size());
  return result;
}

}  // namespace cortado::gpu
