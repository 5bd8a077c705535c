#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cortado {

// The words one after the other, with `separator` between them.
inline std::string joined(std::span<const std::string_view> words, std::string_view separator = ", ") {
  std::string text;
  for (std::string_view word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

}  // namespace cortado
