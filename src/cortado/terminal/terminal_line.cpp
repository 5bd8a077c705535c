#include "cortado/terminal/terminal_line.h"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>

#include "cortado/terminal/terminal.h"

namespace cortado {

void TerminalLine::draw(std::string text) {
  // In the last column some terminals begin a new line at once.
  text.resize(std::min(text.size(), static_cast<size_t>(std::max(1, terminal_columns() - 1))));
  drawn_ = std::move(text);
  fmt::print("\r\x1b[K{}", drawn_);
  std::fflush(stdout);
}

void TerminalLine::clear() {
  if (!drawn_.empty()) fmt::print("\r\x1b[K");
  std::fflush(stdout);
  drawn_.clear();
}

void TerminalLine::print_above(const std::string& line) {
  fmt::print("\r\x1b[K{}\n", line);
  draw(std::move(drawn_));
}

void TerminalLine::finish() {
  if (!drawn_.empty()) fmt::print("\n");
  std::fflush(stdout);
  drawn_.clear();
}

}  // namespace cortado
