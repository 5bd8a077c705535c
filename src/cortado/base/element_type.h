#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

#include "cortado/base/bf16.h"
#include "cortado/base/error.h"
#include "cortado/base/shape.h"
#include "cortado/base/units.h"

namespace cortado {

// What an element of a tensor, a parameter or a message is, where it lies and where it travels. Arithmetic
// within a kernel is the kernel's own affair.
enum class ElementType : uint8_t { f32, f64, bf16 };

// E is what an element of the type is in memory.
template <typename E>
struct ElementRow {
  using Element = E;
  ElementType type;
  std::string_view name;
};
// One row a type; all else here follows.
inline constexpr std::tuple element_rows{ElementRow<float>{ElementType::f32, "f32"},
                                         ElementRow<double>{ElementType::f64, "f64"},
                                         ElementRow<bf16>{ElementType::bf16, "bf16"}};

// The type whose elements are E in memory.
template <typename E>
inline constexpr ElementType element_type_of = std::get<ElementRow<E>>(element_rows).type;

// Returns function.template operator()<E>(), E being what an element of that type is in memory. `first`: the
// row from which on it looks.
template <size_t first = 0, typename Function>
constexpr decltype(auto) with_element_type(ElementType type, Function&& function) {
  using Row = std::tuple_element_t<first, decltype(element_rows)>;
  if (type == std::get<first>(element_rows).type)
    return function.template operator()<typename Row::Element>();
  if constexpr (first + 1 < std::tuple_size_v<decltype(element_rows)>)
    return with_element_type<first + 1>(type, std::forward<Function>(function));
  throw InternalError("an element type that is none");
}

constexpr int64_t size_of(ElementType type) {  // bytes
  return with_element_type(type, []<typename E>() { return static_cast<int64_t>(sizeof(E)); });
}

constexpr std::string_view name_of(ElementType type) {
  return with_element_type(type, []<typename E>() { return std::get<ElementRow<E>>(element_rows).name; });
}

constexpr Bytes bytes_of(int64_t elements, ElementType type) { return {elements * size_of(type)}; }
inline Bytes bytes_of(const Shape& shape, ElementType type) { return bytes_of(shape.size(), type); }
constexpr int64_t elements_in(Bytes bytes, ElementType type) { return bytes.count / size_of(type); }

}  // namespace cortado
