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

// What a layer's outputs are in a network of precision bf16.
enum class OutputRule {
  bf16,       // layers of many products: here bf16 begins
  as_inputs,  // bf16 if input 0 is: layers that act pointwise, normalize, pool or move elements
  f32,        // sources, losses, probabilities, counts and indices: here bf16 ends
};
OutputRule output_rule(const Layer& layer);

// The type of output `output` of a layer by its rule and the types of its inputs. Indices (output 1 of
// Pooling) are f32.
ElementType output_type(const Layer& layer, std::span<const ElementType> inputs, int output);

// What of the layers of one type is bf16, and what f32, in a network of precision bf16, in words.
struct TypePrecision {
  std::string type;
  std::string bf16, f32;
};
// A line for each type among `layers`, in the order in which they come.
std::vector<TypePrecision> precision_policy(std::span<const LayerPtr> layers);

}  // namespace cortado
