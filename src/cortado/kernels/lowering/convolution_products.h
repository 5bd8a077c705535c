#pragma once

#include <cstddef>
#include <vector>

#include "cortado/kernels/lowering/panels.h"
#include "cortado/kernels/lowering/problem.h"
#include "cortado/kernels/lowering/row_product.h"
#include "cortado/kernels/lowering/weight_product.h"

namespace cortado::lowering {

// windows = weight * image: forward of a convolution, backward of a deconvolution.
class GatherProduct {
 public:
  explicit GatherProduct(const ConvolutionProblem& problem);
  void run(const float* image, const float* weight, float* windows, const Epilogue& epilogue,
           std::byte* scratch) const;
  size_t scratch_bytes() const { return product_.scratch_bytes(); }

 private:
  ConvolutionProblem problem_;
  WeightPanels panels_;
  RowProduct product_;
};

// image = weight^T * windows: backward-data of a convolution, forward of a deconvolution. Image positions
// that are equal modulo the stride have the same taps: each such class is a product of its own, without
// multiplying a zero.
class SpreadProduct {
 public:
  explicit SpreadProduct(const ConvolutionProblem& problem);
  void run(const float* windows, const float* weight, float* image, const Epilogue& epilogue,
           std::byte* scratch) const;
  size_t scratch_bytes() const;

 private:
  struct Class {
    RowProduct product;
    std::vector<int64_t> taps;  // of the weight, in the product's order
    int64_t image_offset;       // of its first position
    int64_t right_offset;       // of its repacked weight
  };
  void repack(const float* weight, const Class& part, float* right) const;

  ConvolutionProblem problem_;
  WeightPanels panels_;
  std::vector<Class> classes_;
  int64_t right_elements_ = 0;
};

// weight gradient = image x windows gradient, of convolution and deconvolution.
class CorrelateProduct {
 public:
  explicit CorrelateProduct(const ConvolutionProblem& problem);
  // `bias_gradient` is that of the windows; it and `weight_gradient` may be null.
  void run(const WeightProduct::Operands& operands, float* weight_gradient, float* bias_gradient,
           std::byte* scratch) const;
  size_t scratch_bytes() const { return product_.scratch_bytes(); }

 private:
  ConvolutionProblem problem_;
  WeightPanels panels_;
  WeightProduct product_;
};

}  // namespace cortado::lowering
