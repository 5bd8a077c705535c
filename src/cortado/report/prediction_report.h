#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cortado/base/units.h"
#include "cortado/sim/predict.h"

namespace cortado {

// Predicted beside measured times: layer by layer (compare()'s), and of an iteration, as `simulated` and
// `measured`.
std::string prediction_text(const std::vector<PredictedLayer>& layers, Seconds simulated, Seconds measured);
nlohmann::ordered_json prediction_json(const std::vector<PredictedLayer>& layers, Seconds simulated);

}  // namespace cortado
