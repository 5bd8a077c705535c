#pragma once

#include <string>
#include <vector>

#include "cortado/cost/algorithm_table.h"

namespace cortado {

// A table of what each implementation of a net's convolutions takes. `peak`: of the compute threads.
std::string algorithms_text(const std::vector<NetConvolution>& convolutions, FlopRate peak);
// The same, with the peak and its threads, as text of JSON.
std::string algorithms_json(const std::vector<NetConvolution>& convolutions, FlopRate peak, int threads);

}  // namespace cortado
