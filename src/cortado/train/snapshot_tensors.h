#pragma once

#include <map>
#include <string>

#include "cortado/net/network.h"
#include "cortado/train/safetensors.h"
#include "cortado/train/snapshot_state.h"

namespace cortado {

// How a snapshot lies in a safetensors file.

// The name of a parameter's history.
std::string history_name(int round, const std::string& parameter);
// Whether a tensor of this name is one.
bool is_history(const std::string& tensor);

// What a snapshot says besides its tensors, and the file with them.
std::map<std::string, std::string> state_metadata(const Network& network, const Snapshot& snapshot);
SafetensorsFile tensors_of(const Network& network, const Snapshot& snapshot);

// Throws DamagedFile also where a checksum that should be there is not.
SafetensorsFile read_checked(const std::string& path);
// The snapshot without its tensors. Throws UserError where the file says no such state.
Snapshot state_in(const SafetensorsFile& file, const std::string& path);

}  // namespace cortado
