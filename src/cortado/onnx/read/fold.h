#pragma once

#include <string_view>
#include <vector>

#include "cortado/onnx/read/node.h"

namespace cortado::onnx {

// Computes a node whose inputs are all constants: the arithmetic of shapes, and what exporters do to weights.
// Empty: an operator that is not computed here. Throws UserError without the node's name.
std::vector<ConstantPtr> fold(const Node& node);

// The names of the operators that are.
std::vector<std::string_view> folded_operators();

}  // namespace cortado::onnx
