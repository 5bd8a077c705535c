#include "cortado/kernels/bf16_products.h"

#include "cortado/kernels/onednn/engine.h"

namespace cortado {

bool has_bf16_products() { return onednn::has_bf16_instructions(); }

std::vector<std::string> precision_warnings(Precision precision, bool bf16_products) {
  if (precision != Precision::bf16 || bf16_products) return {};
  return {
      "precision bf16: this processor has no instructions that multiply bf16 numbers; tensors are "
      "stored in bf16 and computed in f32, which saves memory and messages, not time"};
}

}  // namespace cortado
