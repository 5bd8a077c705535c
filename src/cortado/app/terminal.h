#pragma once

#include <string>

namespace cortado {

// True when standard output is a terminal, or that of the process that started this rank is.
bool writes_to_terminal();

// Columns of that terminal now; 80 where it does not say.
int terminal_columns();

// Tells the ranks that this process is about to start whether, and where, its standard output is a terminal.
void tell_ranks_of_terminal();

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

// "1:05", "2:00:00".
std::string clock_text(double seconds);

}  // namespace cortado
