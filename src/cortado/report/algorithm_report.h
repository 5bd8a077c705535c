#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cortado/cost/algorithm_table.h"

namespace cortado {

// A table of what each implementation of a net's convolutions takes. `peak`: of the compute threads.
std::string algorithms_text(const std::vector<NetConvolution>& convolutions, FlopRate peak);
nlohmann::ordered_json algorithms_json(const std::vector<NetConvolution>& convolutions, FlopRate peak);

}  // namespace cortado
