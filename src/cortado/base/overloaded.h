#pragma once

#include <concepts>

namespace cortado {

// One function of several, for std::visit: Overloaded{[](const A&) {...}, [](const B&) {...}}.
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

// For one function of a few kinds: [](const OneOf<A, B> auto&) {...}. Unlike a function of any kind, it lets
// the compiler name the kind that nobody has thought of.
template <typename Kind, typename... Kinds>
concept OneOf = (std::same_as<Kind, Kinds> || ...);

}  // namespace cortado
