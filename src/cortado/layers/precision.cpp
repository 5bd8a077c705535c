#include "cortado/layers/precision.h"

#include <algorithm>

namespace cortado {

std::string_view name_of(Precision precision) { return precision == Precision::bf16 ? "bf16" : "f32"; }

ElementType output_type(const Layer& layer, std::span<const ElementType> inputs, int output) {
  switch (layer.output_rule(output)) {
    case OutputRule::bf16:
      return ElementType::bf16;
    case OutputRule::as_inputs:
      return inputs.empty() ? ElementType::f32 : inputs[0];
    case OutputRule::f32:
      return ElementType::f32;
  }
  return ElementType::f32;
}

std::vector<TypePrecision> precision_policy(std::span<const LayerPtr> layers) {
  std::vector<TypePrecision> policy;
  for (const LayerPtr& layer : layers) {
    if (std::ranges::find(policy, layer->type(), &TypePrecision::type) != policy.end()) continue;
    const OutputRule rule = layer->output_rule(0);
    TypePrecision& of_type = policy.emplace_back();
    of_type.type = layer->type();
    of_type.f32 = rule == OutputRule::f32 ? "outputs" : layer->f32_parts();
    if (rule == OutputRule::bf16) of_type.bf16 = "outputs and their gradients, weights as kernels read them";
    if (rule == OutputRule::as_inputs) of_type.bf16 = "outputs and their gradients, where the first input is";
  }
  return policy;
}

}  // namespace cortado
