#pragma once

#include <span>

#include "cortado/layers/layer.h"
#include "cortado/parallel/config.h"

namespace cortado {

// Throws UserError, naming value and remedy, unless `config` can cut a layer of these shapes over `ranks`.
void check_config(const ParallelConfig& config, const Layer& layer, std::span<const Shape> inputs,
                  std::span<const Shape> outputs, int ranks);

// Into how many parts each dimension of a layer of these shapes may be cut, by itself. A check of the
// configuration also asks that c * r parts of output 0's channels remain where r is cut.
Degrees most_degrees(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs);

// `config` with degrees lowered to what the shapes allow, on its first devices.
ParallelConfig clamped(ParallelConfig config, const Layer& layer, std::span<const Shape> inputs,
                       std::span<const Shape> outputs);

}  // namespace cortado
