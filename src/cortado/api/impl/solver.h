#pragma once

#include <optional>

#include "cortado/api/solver.h"
#include "cortado/net/net_file.h"
#include "cortado/train/solver_nets.h"
#include "cortado/train/solver_options.h"

namespace cortado::api {

struct Solver::Impl {
  caffe::SolverParameter message;
  std::string file;            // for messages
  std::optional<NetFile> net;  // in place of one that the message names
  Overrides overrides;

  cortado::SolverOptions options() const;
  SolverNets nets() const;
};

}  // namespace cortado::api
