#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cortado/base/element_type.h"
#include "cortado/layers/layer.h"

namespace cortado {

// The types in which a network computes. f32: all in float. bf16: activations, their gradients and the
// weights that kernels read are bfloat16; all that is summed over many samples or iterations stays f32:
// parameters, their gradients and histories, statistics, losses (Micikevicius et al., Mixed Precision
// Training, 2018; Kalamkar et al., A Study of BFLOAT16 for Deep Learning Training, 2019).
enum class Precision { f32, bf16 };

std::string_view name_of(Precision precision);

// The type of output `output` of a layer by its rule (Layer::output_rule) and the types of its inputs.
ElementType output_type(const Layer& layer, std::span<const ElementType> inputs, int output);

// What of the layers of one type is bf16, and what f32, in a network of precision bf16, in words.
struct TypePrecision {
  std::string type;
  std::string bf16, f32;
};
// A line for each type among `layers`, in the order in which they come.
std::vector<TypePrecision> precision_policy(std::span<const LayerPtr> layers);

}  // namespace cortado
