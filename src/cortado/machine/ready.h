#pragma once

#include <span>
#include <string_view>

namespace cortado {

// A machine of the folder machines/, compiled in: it is there wherever a program runs.
struct ReadyMachine {
  std::string_view name, file;
};
std::span<const ReadyMachine> compiled_machines();

}  // namespace cortado
