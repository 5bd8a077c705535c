#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cortado/kernels/lowering/panels.h"
#include "cortado/kernels/lowering/problem.h"
#include "cortado/kernels/lowering/row_product.h"
#include "cortado/kernels/lowering/weight_product.h"

namespace cortado::lowering {

// One tensor from the other and the weight.
class DataProduct {
 public:
  virtual ~DataProduct() = default;
  virtual void run(const float* from, const float* weight, float* to, const Epilogue& epilogue,
                   std::byte* scratch) const = 0;
  virtual size_t scratch_bytes() const = 0;
};

// weight gradient = image x windows gradient.
class FilterProduct {
 public:
  virtual ~FilterProduct() = default;
  // `bias_gradient` is that of the windows; it and `weight_gradient` may be null.
  virtual void run(const WeightProduct::Operands& operands, float* weight_gradient, float* bias_gradient,
                   std::byte* scratch) const = 0;
  virtual size_t scratch_bytes() const = 0;
  // True when `masked` must be given with a fused ReLU.
  virtual bool wants_masked() const { return false; }
};

// The three products that a convolution, deconvolution or inner product consists of, what they are called
// together, and how the weight lies in memory that they read.
struct ConvolutionProducts {
  std::unique_ptr<const DataProduct> gather;  // windows = weight * image
  std::unique_ptr<const DataProduct> spread;  // image = weight^T * windows
  std::unique_ptr<const FilterProduct> correlate;
  std::string name;
  ParameterFormat weight;
};
ConvolutionProducts implicit_products(const ConvolutionProblem& problem);

// windows = weight * image: forward of a convolution, backward of a deconvolution.
class GatherProduct : public DataProduct {
 public:
  explicit GatherProduct(const ConvolutionProblem& problem);
  void run(const float* image, const float* weight, float* windows, const Epilogue& epilogue,
           std::byte* scratch) const override;
  size_t scratch_bytes() const override { return product_.scratch_bytes(); }

 private:
  ConvolutionProblem problem_;
  WeightPanels panels_;
  RowProduct product_;
};

// image = weight^T * windows: backward-data of a convolution, forward of a deconvolution. Image positions
// that are equal modulo the stride have the same taps: each such class is a product of its own, without
// multiplying a zero.
class SpreadProduct : public DataProduct {
 public:
  explicit SpreadProduct(const ConvolutionProblem& problem);
  void run(const float* windows, const float* weight, float* image, const Epilogue& epilogue,
           std::byte* scratch) const override;
  size_t scratch_bytes() const override;

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

class CorrelateProduct : public FilterProduct {
 public:
  explicit CorrelateProduct(const ConvolutionProblem& problem);
  void run(const WeightProduct::Operands& operands, float* weight_gradient, float* bias_gradient,
           std::byte* scratch) const override;
  size_t scratch_bytes() const override { return product_.scratch_bytes(); }

 private:
  ConvolutionProblem problem_;
  WeightPanels panels_;
  WeightProduct product_;
};

}  // namespace cortado::lowering
