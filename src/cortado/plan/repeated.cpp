#include "cortado/plan/repeated.h"

#include <numeric>

#include "cortado/base/error.h"

namespace cortado::plan {

Strategy repeated(Strategy strategy, int times) {
  strategy.ranks *= times;
  for (Strategy::Rule& rule : strategy.rules) {
    ParallelConfig& config = rule.layer.config;
    ensure(config.weights.empty(), "parts are equal");
    for (size_t i = 0; i < config.devices.size(); ++i)
      ensure(config.devices[i] == static_cast<int>(i), "a layer is on the first devices");
    config.degrees.n *= times;
    config.devices.resize(config.devices.size() * static_cast<size_t>(times));
    std::iota(config.devices.begin(), config.devices.end(), 0);
  }
  return strategy;
}

}  // namespace cortado::plan
