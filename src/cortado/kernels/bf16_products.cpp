#include "cortado/kernels/bf16_products.h"

#include "cortado/kernels/onednn/engine.h"
#include "cortado/kernels/pairs/dot_rate.h"

namespace cortado {

Bf16Products bf16_products_of(bool instructions, bool tiles, double dots) {
  // Slow ones take the time of four multiply-adds, where two do the same; fast ones that of one or two.
  constexpr double fewest = 0.375;
  if (!instructions) return Bf16Products::none;
  if (tiles) return Bf16Products::tiles;
  return dots >= fewest ? Bf16Products::dots : Bf16Products::slow;
}

Bf16Products bf16_products() {
  static const Bf16Products products = [] {
    const bool instructions = onednn::has_bf16_instructions(), tiles = onednn::has_bf16_tiles();
    const double dots = instructions && !tiles ? pairs::dots_for_a_multiply_add() : 0;
    return bf16_products_of(instructions, tiles, dots);
  }();
  return products;
}

std::vector<std::string> precision_warnings(Precision precision, Bf16Products products) {
  if (precision != Precision::bf16 || products >= Bf16Products::dots) return {};
  const std::string why = products == Bf16Products::none
                              ? "has no instructions that multiply bf16 numbers"
                              : "multiplies bf16 numbers more slowly than f32 numbers";
  return {"precision bf16: this processor " + why +
          "; tensors are stored in bf16 and computed in f32, which saves memory and messages more than time"};
}

}  // namespace cortado
