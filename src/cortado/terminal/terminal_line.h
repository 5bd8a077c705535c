#pragma once

#include <string>

namespace cortado {

// One line of a terminal that is rewritten in place. What is longer than the terminal is wide is cut.
class TerminalLine {
 public:
  ~TerminalLine() { finish(); }
  void draw(std::string text);
  void clear();                               // erases what is drawn
  void print_above(const std::string& line);  // a line that stays
  void finish();                              // leaves what is drawn as a line

 private:
  std::string drawn_;
};

}  // namespace cortado
