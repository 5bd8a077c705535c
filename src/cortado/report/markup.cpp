#include "cortado/report/markup.h"

#include <cstdint>
#include <fmt/format.h>

namespace cortado {
namespace {

// Returns the length in bytes of the UTF-8 character that `text` begins with; 0: it begins with none that XML
// allows.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 || byte(0) == '\t' || byte(0) == '\n' ? 1 : 0;
  const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return 0;
  uint32_t code = byte(0) & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool shortest = code >= (length == 4 ? 0x10000u : length == 3 ? 0x800u : 0x80u);
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return shortest && !surrogate && code <= 0x10ffff && code != 0xfffe && code != 0xffff ? length : 0;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t length = character_length(text);
    const std::string_view character = text.substr(0, length);
    if (length == 0) {
      result += '?';
    } else if (character == "&") {
      result += "&amp;";
    } else if (character == "<") {
      result += "&lt;";
    } else if (character == ">") {
      result += "&gt;";
    } else if (character == "\"") {
      result += "&quot;";
    } else if (character == "'") {
      result += "&#39;";
    } else {
      result += character;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

std::string breakable(std::string_view escaped_name) {
  std::string result;
  for (char byte : escaped_name) {
    result += byte;
    if (byte == '/' || byte == '_' || byte == '+') result += "<wbr/>";
  }
  return result;
}

std::string table_cell(const char* label, const std::string& value) {
  return fmt::format("<td data-label=\"{}\">{}</td>", label, value);
}

}  // namespace cortado
