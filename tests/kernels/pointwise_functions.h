#pragma once

#include <set>
#include <vector>

#include "cortado/layers/pointwise.h"

namespace cortado::check {

// Whether every function of single elements is among these.
inline bool has_every_function(const std::vector<PointwiseFunction>& functions) {
  std::set<size_t> seen;
  for (const PointwiseFunction& function : functions) seen.insert(function.index());
  return seen.size() == std::variant_size_v<PointwiseFunction>;
}

}  // namespace cortado::check
