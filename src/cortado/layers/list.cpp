#include "cortado/layers/list.h"

#include <algorithm>

namespace cortado {

std::span<const LayerType> layer_types() {
  static constexpr LayerType types[] = {
      {"Convolution", "1-D, 2-D and 3-D convolution, grouped and dilated"},
      {"Deconvolution", "transposed convolution"},
      {"Pooling", "max, average and stochastic pooling"},
      {"InnerProduct", "fully connected layer"},
      {"LRN", "local response normalization across or within channels"},
      {"BatchNorm", "batch normalization without scale and shift"},
      {"Scale", "product with a parameter or a second input, broadcast"},
      {"Bias", "sum with a parameter or a second input, broadcast"},
      {"ReLU", "max(x, 0), optionally leaky"},
      {"PReLU", "leaky ReLU with a learned slope"},
      {"ELU", "exponential linear unit"},
      {"Sigmoid", "1 / (1 + e^-x)"},
      {"TanH", "hyperbolic tangent"},
      {"AbsVal", "absolute value"},
      {"BNLL", "log(1 + e^x)"},
      {"Power", "(shift + scale * x)^power"},
      {"Exp", "base^(shift + scale * x)"},
      {"Log", "logarithm of shift + scale * x"},
      {"Dropout", "random zeros in training"},
      {"MVN", "mean-variance normalization of each sample"},
  };
  return types;
}

bool is_layer_type(std::string_view name) {
  return std::ranges::any_of(layer_types(), [&](const LayerType& type) { return type.name == name; });
}

}  // namespace cortado
