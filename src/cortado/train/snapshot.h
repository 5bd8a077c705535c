#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"
#include "cortado/net/weights.h"
#include "cortado/train/snapshot_state.h"
#include "cortado/train/solver_options.h"

namespace cortado {

// Writes a snapshot and gives the file to resume from; each file is written under a temporary name, synced
// and renamed, so a kill at any moment leaves all former snapshots and at most a new weights file. Each has a
// checksum of all its bytes (docs/reference/files.md).
//   cortado  PREFIX_iter_N.safetensors: all tensors ("conv1/weight", "history0:conv1/weight") and, in the
//            header's metadata "cortado", the rest as JSON: one file, so it is there or it is not
//   caffe    PREFIX_iter_N.caffemodel, then PREFIX_iter_N.solverstate
//   hdf5     PREFIX_iter_N.caffemodel.h5, then PREFIX_iter_N.solverstate.h5
// Throws UserError: a full disk, a folder that is not there, a parameter that is not finite.
std::string write_snapshot(const std::string& prefix, SnapshotFormat format, const LoadedNetwork& net,
                           const Snapshot& snapshot);

// Reads what write_snapshot's result names. `rounds`: history tensors the solver keeps for a parameter.
// Throws UserError: of another solver or net; DamagedFile: unsound.
Snapshot read_snapshot(const std::string& path, const Network& network, const std::string& solver,
                       int rounds);

// The same; where that file is damaged, the newest sound one of the same prefix and an earlier iteration.
struct FoundSnapshot {
  Snapshot snapshot;
  std::string path;   // of what was read
  std::string fault;  // what is wrong with the one that was asked for; empty: that is it
};
FoundSnapshot read_sound_snapshot(const std::string& path, const Network& network, const std::string& solver,
                                  int rounds);

// Weights from .caffemodel, Caffe's HDF5 or .safetensors (whose histories are left out).
Weights read_any_weights(const std::string& path, const Network& network);
// How layers of one name are distinguished in it when it is read as weights to start from.
SameName same_name_of(const std::string& path);

}  // namespace cortado
