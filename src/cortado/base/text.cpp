#include "cortado/base/text.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace cortado {

namespace {

// The bytes of the character that `text` begins with; 0 when that is no character, or one that controls.
size_t shown_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first < 0x20 || first == 0x7F ? 0 : 1;
  const size_t size = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (size == 0 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const bool more_controls = first == 0xC2 && byte(1) < 0xA0;
  return more_controls ? 0 : size;
}

}  // namespace

std::string shell_word(std::string_view word) {
  const auto plain = [](char byte) {
    return std::isalnum(static_cast<unsigned char>(byte)) ||
           std::string_view("_-./,:=+@%").find(byte) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, plain)) return std::string(word);
  std::string quoted = "'";
  for (char byte : word) quoted += byte == '\'' ? "'\\''" : std::string(1, byte);
  return quoted + "'";
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    size_t size = shown_character(text);
    if (size > 0)
      shown += text.substr(0, size);
    else if (text[0] == '\n' || text[0] == '\t')
      shown += text[0] == '\n' ? "\\n" : "\\t";
    else
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    text.remove_prefix(size > 0 ? size : 1);
  }
  return shown;
}

std::string message_line(std::string_view message) {
  constexpr size_t longest = 3000, first = 2000, last = 500;
  if (message.size() <= longest) return printable(message);
  return fmt::format("{} ... {}", printable(message.substr(0, first)),
                     printable(message.substr(message.size() - last)));
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    size_t comma = std::min(text.find(',', begin), text.size());
    if (comma > begin) parts.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return parts;
}

}  // namespace cortado
