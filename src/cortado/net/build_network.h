#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cortado/net/network.h"

namespace cortado {

// Resolves names, shapes and gradients. A network that `learns` has gradients; by default one of phase
// train does; `gradients_from_outputs` as in decide_gradients(). Throws UserError naming file, line, layer
// and remedy: unknown or doubly produced blob, cycle, shape mismatch, unequal shared parameters.
Network build_network(std::string name, Phase phase, const std::vector<LayerDeclaration>& layers,
                      const Network::SourceShapes& source_shapes, std::optional<bool> learns = {},
                      bool gradients_from_outputs = false);

}  // namespace cortado
