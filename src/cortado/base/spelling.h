#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace cortado {

// How messages spell the name of what a user set, given as an option's without its dashes: "fast-math".
using Spelling = std::string (*)(std::string_view name);

// Returns an option of a command: "--fast-math".
inline std::string as_option(std::string_view name) { return "--" + std::string(name); }

// Returns a field of the library: "fast_math".
inline std::string as_field(std::string_view name) {
  std::string field(name);
  std::ranges::replace(field, '-', '_');
  return field;
}

}  // namespace cortado
