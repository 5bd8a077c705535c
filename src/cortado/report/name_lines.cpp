#include "cortado/report/name_lines.h"

#include <algorithm>
#include <string_view>

namespace cortado {
namespace {

bool goes_on(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// Returns the pieces between which a line may end: each goes up to a separator, or is as long as a line.
std::vector<std::string> pieces_of(const std::string& name, size_t most_letters) {
  constexpr std::string_view separators = "/_-.:+";
  std::vector<std::string> pieces;
  size_t letters = 0;
  for (char byte : name) {
    const bool full = letters == most_letters && !goes_on(byte);
    const bool ended = !pieces.empty() && separators.find(pieces.back().back()) != separators.npos;
    if (pieces.empty() || full || ended) pieces.emplace_back(), letters = 0;
    pieces.back() += byte;
    letters += goes_on(byte) ? 0 : 1;
  }
  return pieces;
}

std::vector<std::string> lines_of(const std::vector<std::string>& pieces, size_t most_letters) {
  std::vector<std::string> lines;
  for (const std::string& piece : pieces) {
    if (lines.empty() || letters_of(lines.back()) + letters_of(piece) > most_letters) lines.emplace_back();
    lines.back() += piece;
  }
  return lines;
}

// Returns "…" and the last letters of a line, `most` together.
std::string ending(const std::string& line, size_t most) {
  const size_t letters = letters_of(line), kept = std::min(letters, most - 1);
  size_t begin = 0;
  for (size_t dropped = 0; begin < line.size(); ++begin) {
    if (!goes_on(line[begin]) && dropped++ == letters - kept) break;
  }
  return "\u2026" + line.substr(begin);
}

}  // namespace

size_t letters_of(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char byte) { return !goes_on(byte); }));
}

std::vector<std::string> name_lines(const std::string& name, size_t most_letters, size_t most_lines) {
  const std::vector<std::string> pieces = pieces_of(name, most_letters);
  std::vector<std::string> lines = lines_of(pieces, most_letters);
  if (lines.size() > most_lines) {
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(most_lines));
    lines.front() = ending(lines.front(), most_letters);
    return lines;
  }
  // Keeps the number of lines, and makes their lengths as even as can be.
  for (size_t letters = most_letters; letters > 1; --letters) {
    std::vector<std::string> narrower = lines_of(pieces, letters - 1);
    if (narrower.size() > lines.size()) break;
    lines = std::move(narrower);
  }
  return lines;
}

}  // namespace cortado
