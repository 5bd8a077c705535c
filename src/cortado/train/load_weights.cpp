#include "cortado/train/load_weights.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/train/snapshot.h"

namespace cortado {

PassedOver load_weights(const std::string& path, const Executor& executor, ParameterStore& parameters) {
  const Network& network = executor.network();
  Weights weights = read_any_weights(path, network);
  WeightMatch match = match_weights(network, weights, path, same_name_of(path));
  size_t matched = 0;
  for (ParameterIndex p : indices(match.of_parameter)) {
    if (!match.of_parameter[p]) continue;
    parameters.set_from_whole(parameters.original(executor.parameter_entries()[p]),
                              match.of_parameter[p]->values);
    ++matched;
  }
  if (matched == 0 && !network.parameters().empty()) {
    throw UserError(fmt::format("{}: none of its layers is in net '{}'; these are weights of another net",
                                path, network.name()));
  }
  parameters.refresh();
  return {match.unmatched_layers, match.unused_layers};
}

}  // namespace cortado
