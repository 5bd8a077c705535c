#pragma once

#include <cstdint>
#include <string_view>

#include "cortado/base/bf16.h"
#include "cortado/base/error.h"
#include "cortado/base/shape.h"
#include "cortado/base/units.h"

namespace cortado {

// What an element of a tensor, a parameter or a message is, where it lies and where it travels. Arithmetic
// within a kernel is the kernel's own affair.
enum class ElementType : uint8_t { f32, f64, bf16 };

constexpr int64_t size_of(ElementType type) {  // bytes
  switch (type) {
    case ElementType::f32:
      return 4;
    case ElementType::f64:
      return 8;
    case ElementType::bf16:
      return 2;
  }
  return 0;
}

constexpr std::string_view name_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return "f32";
    case ElementType::f64:
      return "f64";
    case ElementType::bf16:
      return "bf16";
  }
  return "";
}

// Returns function.template operator()<E>(), E being what an element of that type is in memory.
template <typename Function>
decltype(auto) with_element_type(ElementType type, Function&& function) {
  switch (type) {
    case ElementType::f32:
      return function.template operator()<float>();
    case ElementType::f64:
      return function.template operator()<double>();
    case ElementType::bf16:
      return function.template operator()<bf16>();
  }
  throw InternalError("an element type that is none");
}

constexpr Bytes bytes_of(int64_t elements, ElementType type) { return {elements * size_of(type)}; }
inline Bytes bytes_of(const Shape& shape, ElementType type) { return bytes_of(shape.size(), type); }
constexpr int64_t elements_in(Bytes bytes, ElementType type) { return bytes.count / size_of(type); }

}  // namespace cortado
