#pragma once

#include "cortado/net/net_file.h"

namespace cortado {

// Returns one line, with its remedy, for each field of a data layer that has no effect: Caffe once read it,
// and neither Caffe nor Cortado does so now. Older layers' transformations are upgraded instead
// (upgrade_net).
std::vector<std::string> fields_without_effect(const NetFile& file);

}  // namespace cortado
