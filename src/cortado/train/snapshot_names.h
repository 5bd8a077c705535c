#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cortado/train/solver_options.h"

namespace cortado {

// The names of snapshots: PREFIX_iter_N.safetensors, .caffemodel and .solverstate, the latter two also
// followed by .h5.
struct SnapshotName {
  std::string prefix;
  int64_t iteration = 0;
  std::string ending;
};
std::string snapshot_file(const std::string& prefix, int64_t iteration, const std::string& ending);
std::optional<SnapshotName> parse_snapshot_name(const std::string& path);

// The files to resume from of the same prefix and of earlier iterations, the latest first.
std::vector<std::string> earlier_snapshots(const std::string& path);

// Throws UserError when a snapshot that the training may write between its first iteration and the last would
// replace one of `inputs`.
void check_snapshots_spare(const SolverOptions& solver, int64_t first_iteration,
                           const std::vector<std::string>& inputs);

// The weights of a state in Caffe's formats: of "small_iter_20.solverstate.h5",
// "small_iter_20.caffemodel.h5".
std::string weights_beside(const std::string& state);

}  // namespace cortado
