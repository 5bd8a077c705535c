#pragma once

#include "cortado/net/net_file.h"

namespace cortado {

// What a net says in vain, a line each with its remedy: fields of the data layers that Caffe once read and no
// longer does, and so Cortado does not. Older layers' transformations are upgraded instead (upgrade_net).
std::vector<std::string> fields_without_effect(const NetFile& file);

}  // namespace cortado
