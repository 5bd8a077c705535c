#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// "a,b" to its parts; nothing for "".
std::vector<std::string> split_list(const std::string& text);

// A word as a shell takes it: quoted where need be.
std::string shell_word(std::string_view word);

// A field of a table in CSV (RFC 4180): quoted where it must be.
std::string csv_field(const std::string& text);

// Text of a file, or of another file's names, as a terminal shows it and does not obey it: on one line, with
// control characters and bytes that are no UTF-8 as \n, \t or \x1b.
std::string printable(std::string_view text);

// A message about such text, so printed; of a very long one the beginning and the end.
std::string message_line(std::string_view message);

}  // namespace cortado
