#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cortado/base/units.h"
#include "cortado/sim/predict.h"

namespace cortado {

// Returns a table of predicted beside measured times: of `layers`, which compare() returns, and of the
// iteration, `simulated` beside `measured`.
std::string prediction_text(const std::vector<PredictedLayer>& layers, Seconds simulated, Seconds measured);
nlohmann::ordered_json prediction_json(const std::vector<PredictedLayer>& layers, Seconds simulated);

}  // namespace cortado
