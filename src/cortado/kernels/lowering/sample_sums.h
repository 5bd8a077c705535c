#pragma once

#include "cortado/kernels/lowering/convolution_products.h"

namespace cortado::lowering {

// The gradient of an inner product's weight and bias, in the panels of the weight: sums over samples within
// each of so many parts of them, a power of two, then over parts in the tree of base/sum_tree.h. No element
// depends on how many outputs there are, nor on threads.
class SampleSums : public FilterProduct {
 public:
  SampleSums(int64_t batch, int64_t depth, int64_t outputs, int parts);
  void run(const WeightProduct::Operands& operands, float* weight_gradient, float* bias_gradient,
           std::byte* scratch) const override;
  size_t scratch_bytes() const override;

 private:
  void pack(const WeightProduct::Operands& operands, int64_t panel, float* packed) const;
  void sum_weights(const float* left, const float* packed, int64_t first, int64_t panel,
                   float* gradient) const;
  void sum_bias(const float* packed, int64_t panel, float* bias) const;

  int64_t batch_, depth_, outputs_, panels_;
  int parts_;
};

}  // namespace cortado::lowering
