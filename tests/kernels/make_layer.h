#pragma once

#include <memory>
#include <utility>

#include "cortado/layers/pointwise.h"

namespace cortado::check {

template <typename L, typename... Options>
LayerPtr layer(Options&&... options) {
  return std::make_shared<L>(std::forward<Options>(options)...);
}

inline LayerPtr relu() { return layer<Pointwise>(ReluOptions{}); }

}  // namespace cortado::check
