#pragma once

#include <string>
#include <vector>

#include "cortado/report/time_report.h"
#include "cortado/terminal/terminal_line.h"

namespace cortado {

// Prints the progress of a timing: the lines of `caffe time` (log_lines.h) or, on a terminal, one progress
// line. Times of an iteration are those of its forward and backward pass, without the update.
class TimeLines {
 public:
  // `use`: says on what is computed.
  TimeLines(bool lines, int iterations, const std::string& use);
  void iteration(const IterationTimes& times);
  // Prints Caffe's averages: of each layer of the network, of the passes and of all. A layer that a kernel
  // runs with the one before it has no time of its own; such layers are named.
  void end(const Network& network, const Program& program, const std::vector<IterationTimes>& times);

 private:
  bool lines_;
  int iterations_, done_ = 0;
  double seconds_ = 0;
  TerminalLine line_;
};

}  // namespace cortado
