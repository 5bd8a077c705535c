#pragma once

namespace cortado {

// One function of several, for std::visit: Overloaded{[](const A&) {...}, [](const B&) {...}}.
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace cortado
