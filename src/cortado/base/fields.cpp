#include "cortado/base/fields.h"

#include <fmt/format.h>

namespace cortado {

std::string word_of(bool value, Words) { return value ? "true" : "false"; }
std::string word_of(int64_t value, Words) { return std::to_string(value); }
std::string word_of(double value, Words) { return fmt::format("{}", value); }

std::string word_of(const std::string& value, Words) {
  std::string text = "\"";
  for (char c : value) {
    const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';
    text += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text + '"';
}

}  // namespace cortado
