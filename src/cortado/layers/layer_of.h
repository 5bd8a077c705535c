#pragma once

#include <type_traits>
#include <utility>

#include "cortado/layers/layer.h"

namespace cortado {

struct NoOptions {
  static constexpr auto fields = std::tuple{};
};

// A layer that holds options of one struct, or of a variant of them.
template <typename Options>
class LayerOf : public Layer {
 public:
  LayerOf() requires std::is_empty_v<Options> {}
  explicit LayerOf(Options options) : options_(std::move(options)) {}
  const Options& options() const { return options_; }
  std::string options_text(Words which) const final { return words_of(options_, which); }

 protected:
  Options options_;
};

}  // namespace cortado
