#pragma once

#include <string>
#include <vector>

#include "cortado/net/network.h"
#include "cortado/proto/caffe.pb.h"
#include "cortado/train/solver_options.h"

namespace cortado {

// These return a line, with its remedy, for each thing that a training does not do as Caffe does by the same
// files.

// Fields of the solver file that are read in vain; `file` is its path.
std::vector<std::string> fields_without_effect(const caffe::SolverParameter& solver, const std::string& file);
// Parameters without a gradient, which weight decay alone would change.
std::vector<std::string> undecayed_parameters(const Network& network, const UpdateOptions& options);

}  // namespace cortado
