#pragma once

#include <string>
#include <vector>

#include "cortado/net/network.h"

namespace cortado {

// Why layer `reader` of `layers` cannot read `blob`, which no layer before it makes: nobody makes it, a later
// layer does, or the net is cyclic.
std::string missing_blob(const std::vector<LayerDeclaration>& layers, size_t reader, const std::string& blob);

}  // namespace cortado
