#pragma once

#include <string>

#include "cortado/net/network.h"

namespace cortado {

// Throws UserError, beginning with `file`, when a training of the net would change nothing: it has no loss,
// no weights, weights that all stand still (lr_mult: 0), or none before a loss.
void require_trainable(const Network& network, const std::string& file);

}  // namespace cortado
