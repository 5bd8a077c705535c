#pragma once

#include <string>
#include <vector>

#include "cortado/net/weights.h"

namespace cortado {

// Caffe's solverstate: where a training stood and the solver's history, in Caffe's order of tensors (for
// Adam and AdaDelta two rounds over all parameters).
struct SolverStateFile {
  int iteration = 0;
  int current_step = 0;
  std::string learned_net;  // path of the weights
  std::string solver;       // its type, "SGD"; Caffe's own files do not tell: empty
  std::vector<Blob> history;
  bool operator==(const SolverStateFile&) const = default;
};

// Binaryproto or HDF5: the content tells which. Throws UserError.
SolverStateFile read_solver_state(const std::string& path);
void write_solver_state(const std::string& path, const SolverStateFile& state);
void write_solver_state_hdf5(const std::string& path, const SolverStateFile& state);

// SolverParameter from a prototxt, solver_type upgraded. Nets within it still go through net_of_message().
caffe::SolverParameter read_solver(const std::string& path);
caffe::SolverParameter parse_solver(const std::string& text, const std::string& path);

}  // namespace cortado
