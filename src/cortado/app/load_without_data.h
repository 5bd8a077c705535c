#pragma once

#include "cortado/app/common.h"
#include "cortado/net/net_file.h"

namespace cortado {

// The network that the options name, its data replaced: shapes of source layers come from the layer's own
// options, else from --input-shape, else from its database or list, else (no such file) from its crop size.
// Throws UserError when none of them tells.
LoadedNetwork load_without_data(const ModelOptions& options, Phase otherwise);

}  // namespace cortado
