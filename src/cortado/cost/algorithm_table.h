#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cortado/cost/cost_model.h"

namespace cortado {

// One way to compute a convolution: what the cost model says of it (kernels/lowering/cost.h) and what it
// takes, or why it is not measured.
struct Algorithm {
  std::string name;
  std::string first_type;  // Implementation::first_type
  std::string refusal;     // of the implementation
  std::string pruned;      // why it need not be measured
  Seconds predicted;       // of all passes
  Bytes scratch;
  std::optional<TaskTime> time;
};

// The algorithms of a task, in the order of the list of implementations.
struct AlgorithmTable {
  std::vector<Algorithm> algorithms;
  int listed = -1;   // the first of the list that accepts: what runs where nobody measures
  int pick = -1;     // the fastest measured, all passes together
  double flops = 0;  // of a pass, multiply-adds counted two
};

// A convolution of a net with its algorithms, and the layers that are the same convolution.
struct NetConvolution {
  std::vector<std::string> layers;
  Task task;
  AlgorithmTable table;
};

}  // namespace cortado
