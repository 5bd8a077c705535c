#pragma once

#include <string>
#include <vector>

#include "cortado/layers/precision.h"

namespace cortado {

// How this processor multiplies bf16 numbers.
enum class Bf16Products {
  none,   // it has no instructions for them
  slow,   // those that it has make fewer products than those for f32
  dots,   // vdpbf16ps makes more
  tiles,  // AMX makes more, and more than vdpbf16ps
};
Bf16Products bf16_products();
// Those of a processor that has instructions for them, AMX among these, and does so many vdpbf16ps in the
// time of a multiply-add (kernels/pairs/dot_rate.h).
Bf16Products bf16_products_of(bool instructions, bool tiles, double dots);

// Whether kernels here use instructions for bf16 unasked. Where not, they multiply in f32.
inline bool has_fast_bf16_products() { return bf16_products() >= Bf16Products::dots; }

// What a user of that precision should know of a processor with such products, a line each.
std::vector<std::string> precision_warnings(Precision precision, Bf16Products products = bf16_products());

}  // namespace cortado
