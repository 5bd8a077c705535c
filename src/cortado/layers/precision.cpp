#include "cortado/layers/precision.h"

#include <algorithm>
#include <array>

namespace cortado {
namespace {

constexpr std::array<std::string_view, 3> of_products = {"Convolution", "Deconvolution", "InnerProduct"};
constexpr std::array<std::string_view, 6> of_results = {"Softmax",    "Accuracy",  "ArgMax",
                                                        "HDF5Output", "Reduction", "Embed"};

}  // namespace

std::string_view name_of(Precision precision) { return precision == Precision::bf16 ? "bf16" : "f32"; }

OutputRule output_rule(const Layer& layer) {
  if (std::ranges::find(of_products, layer.type()) != of_products.end()) return OutputRule::bf16;
  const bool result = std::ranges::find(of_results, layer.type()) != of_results.end();
  if (result || layer.is_source() || layer.default_loss_weight(0) != 0) return OutputRule::f32;
  return OutputRule::as_inputs;
}

ElementType output_type(const Layer& layer, std::span<const ElementType> inputs, int output) {
  if (output > 0 && layer.type() == "Pooling") return ElementType::f32;
  switch (output_rule(layer)) {
    case OutputRule::bf16:
      return ElementType::bf16;
    case OutputRule::as_inputs:
      return inputs.empty() ? ElementType::f32 : inputs[0];
    case OutputRule::f32:
      return ElementType::f32;
  }
  return ElementType::f32;
}

}  // namespace cortado
