#pragma once

#include <cstddef>
#include <cstdint>

#include "cortado/base/element_type.h"

namespace cortado {

// Memory of elements of one type. Pointers to elements become one by themselves.
struct ElementPointer {
  void* memory = nullptr;
  ElementType type = ElementType::f32;

  ElementPointer(void* at, ElementType of) : memory(at), type(of) {}
  template <typename E>
  ElementPointer(E* at) : memory(at), type(element_type_of<E>) {}

  ElementPointer operator+(int64_t elements) const {
    return {static_cast<std::byte*>(memory) + bytes_of(elements, type).count, type};
  }
};

// Throws InternalError unless ranks sum elements of that type. Those of bf16 only travel: every addend would
// be rounded.
void ensure_summed(ElementType type);

// sums[i] += addends[i] for i in [0, count); both are of the sums' type, one that is summed.
void add_elements(ElementPointer sums, const void* addends, int64_t count);

}  // namespace cortado
