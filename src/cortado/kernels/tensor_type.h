#pragma once

#include "cortado/base/element_type.h"
#include "cortado/base/error.h"

namespace cortado {

// Whether tensors may have elements of that type. What is summed in double is no tensor.
constexpr bool is_tensor_type(ElementType type) { return type != ElementType::f64; }

// with_element_type() for types of tensors: `function` needs no code for others. Its result has one type.
template <typename Function>
decltype(auto) with_tensor_type(ElementType type, Function&& function) {
  using Result = decltype(function.template operator()<float>());
  return with_element_type(type, [&]<typename E>() -> Result {
    if constexpr (is_tensor_type(element_type_of<E>))
      return function.template operator()<E>();
    else
      throw InternalError("a tensor of a type that tensors do not have");
  });
}

}  // namespace cortado
