#pragma once

#include <optional>
#include <vector>

#include "cortado/net/network.h"

namespace cortado {

// Decides which gradients a network computes, by Caffe's rules: an input's gradient is wanted when a
// learnable parameter with lr_mult != 0 lies before it and a loss after it; propagate_down of the file
// overrules the former. Sets Node::propagate_down and has_backward, Tensor::needs_gradient,
// Parameter::wants_gradient. `requested` holds the file's propagate_down per node and input. With
// `from_outputs` a tensor that no layer reads counts as a loss, of weight 0 where it is none: who runs the
// net gives its gradient. Throws UserError when `requested` asks for the gradient of an input that has none.
void decide_gradients(IndexedVector<NodeIndex, Network::Node>& nodes,
                      IndexedVector<TensorIndex, Network::Tensor>& tensors,
                      IndexedVector<ParameterIndex, Network::Parameter>& parameters,
                      const IndexedVector<NodeIndex, std::vector<std::optional<bool>>>& requested,
                      bool from_outputs = false);

}  // namespace cortado
