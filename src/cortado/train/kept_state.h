#pragma once

#include <string>
#include <vector>

#include "cortado/base/box.h"
#include "cortado/train/safetensors.h"
#include "cortado/train/snapshot_state.h"

namespace cortado {

// The state of a training as the ranks that a lost one left have it, in parts: each rank's file has slices of
// parameters and histories, and together they have all of each.
//   PREFIX_iter_N.kept_RANK.safetensors: tensors and metadata as in a snapshot; in the metadata
//   "cortado_kept" also the ranks that have parts and the slice of each tensor, as JSON.

std::string kept_state_file(const std::string& prefix, int64_t iteration, int rank);
bool is_kept_state(const std::string& path);

// This rank's part.
struct KeptPart {
  struct Slice {
    std::string name;  // a parameter's or a history's
    Box box;           // of the whole tensor
    std::vector<float> values;
  };
  int rank = 0;
  std::vector<int> ranks;  // that have parts, ascending
  Snapshot state;          // without tensors
  std::vector<Slice> slices;
};
// Writes it as write_snapshot() does, and returns its file. Throws UserError.
std::string write_kept_part(const std::string& prefix, const Network& network, KeptPart part);

// Puts the parts together of which `path` is one. Throws DamagedFile where one is not there or not sound, or
// where they are not whole.
Snapshot read_kept_state(const std::string& path, const Network& network, int rounds);

}  // namespace cortado
