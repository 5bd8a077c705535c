#pragma once

#include <string>
#include <vector>

#include "cortado/cost/algorithm_table.h"

namespace cortado {

// A table of what each implementation of a net's convolutions takes. `peak`: of the compute threads.
std::string algorithms_text(const std::vector<NetConvolution>& convolutions, FlopRate peak);
// Returns the same as JSON, with the peak and its threads.
std::string algorithms_json(const std::vector<NetConvolution>& convolutions, FlopRate peak, int threads);

}  // namespace cortado
