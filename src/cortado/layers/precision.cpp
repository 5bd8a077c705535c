#include "cortado/layers/precision.h"

#include <algorithm>
#include <iterator>

namespace cortado {
namespace {

// What is said of layers of one type. Of other types, products are bf16, sources and losses f32, and the rest
// follows its first input.
struct TypeRule {
  std::string_view type;
  OutputRule outputs = OutputRule::as_inputs;
  std::string_view exact{};  // what of it is f32 beside bf16 outputs
};

constexpr std::string_view weights = "weights, their gradients and histories", statistics = "statistics",
                           factors = "factors, their gradients and histories";
constexpr TypeRule type_rules[] = {
    {"BatchNorm", OutputRule::as_inputs, statistics},
    {"MVN", OutputRule::as_inputs, statistics},
    {"Scale", OutputRule::as_inputs, factors},
    {"Bias", OutputRule::as_inputs, factors},
    {"PReLU", OutputRule::as_inputs, factors},
    {"Normalize", OutputRule::as_inputs, factors},
    {"Pooling", OutputRule::as_inputs, "indices"},
    {"Softmax", OutputRule::f32},
    {"Accuracy", OutputRule::f32},
    {"ArgMax", OutputRule::f32},
    {"HDF5Output", OutputRule::f32},
    {"Reduction", OutputRule::f32},
    {"Embed", OutputRule::f32},
};

TypeRule type_rule(const Layer& layer) {
  const auto* found = std::ranges::find(type_rules, layer.type(), &TypeRule::type);
  if (found != std::end(type_rules)) return *found;
  if (layer.products() != Products::none) return {layer.type(), OutputRule::bf16, weights};
  const bool result = layer.is_source() || layer.default_loss_weight(0) != 0;
  return {layer.type(), result ? OutputRule::f32 : OutputRule::as_inputs};
}

}  // namespace

std::string_view name_of(Precision precision) { return precision == Precision::bf16 ? "bf16" : "f32"; }

OutputRule output_rule(const Layer& layer) { return type_rule(layer).outputs; }

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

std::vector<TypePrecision> precision_policy(std::span<const LayerPtr> layers) {
  std::vector<TypePrecision> policy;
  for (const LayerPtr& layer : layers) {
    const TypeRule rule = type_rule(*layer);
    if (std::ranges::find(policy, rule.type, &TypePrecision::type) != policy.end()) continue;
    TypePrecision& of_type = policy.emplace_back();
    of_type.type = rule.type;
    of_type.f32 = rule.outputs == OutputRule::f32 ? "outputs" : rule.exact;
    if (rule.outputs == OutputRule::bf16)
      of_type.bf16 = "outputs and their gradients, weights as kernels read them";
    if (rule.outputs == OutputRule::as_inputs)
      of_type.bf16 = "outputs and their gradients, where the first input is";
  }
  return policy;
}

}  // namespace cortado
