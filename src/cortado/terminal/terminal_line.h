#pragma once

#include <string>

namespace cortado {

// One line of a terminal that is rewritten in place. It keeps to the terminal's width: what is longer is cut.
class TerminalLine {
 public:
  ~TerminalLine() { finish(); }
  void draw(std::string text);
  void clear();                               // nothing stands there any more
  void print_above(const std::string& line);  // a line that stays
  void finish();                              // leaves what is drawn as a line

 private:
  std::string drawn_;
};

}  // namespace cortado
