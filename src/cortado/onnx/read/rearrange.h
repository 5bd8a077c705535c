#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "cortado/onnx/read/node.h"

namespace cortado::onnx {

// Throws UserError for a constant of more numbers than most_computed and than what it is made of, `parts`.
void check_computed(const Shape& shape, int64_t parts);

// For each element of `whole`, in row-major order, the element of `part` that is repeated there.
std::vector<int64_t> broadcast_sources(const Shape& part, const Shape& whole);
// The elements `sources` of a constant.
ConstantPtr rearranged(const Constant& x, const Shape& shape, const std::vector<int64_t>& sources);

// Operators on constants that compute no number: they choose elements, or see them in another shape.
struct RearrangeFunction {
  std::string_view name;
  std::vector<ConstantPtr> (*fold)(const Node&);
};
std::span<const RearrangeFunction> rearrange_functions();

}  // namespace cortado::onnx
