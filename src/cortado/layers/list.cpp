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
      {"Softmax", "exponentials along an axis that sum to one"},
      {"SoftmaxWithLoss", "multinomial logistic loss of a softmax"},
      {"EuclideanLoss", "half the mean squared distance"},
      {"SigmoidCrossEntropyLoss", "cross entropy of independent sigmoids"},
      {"HingeLoss", "one-against-all margin loss"},
      {"ContrastiveLoss", "distance loss of similar and dissimilar pairs"},
      {"Accuracy", "share of labels among the highest scores"},
      {"Concat", "inputs joined along an axis"},
      {"Slice", "input cut along an axis"},
      {"Split", "copies of the input"},
      {"Eltwise", "elementwise sum, product or maximum"},
      {"Flatten", "axes joined into one"},
      {"Reshape", "the same elements under another shape"},
      {"Crop", "part of an input with the extents of another"},
      {"Reduction", "sum, absolute sum, square sum or mean over the last axes"},
      {"ArgMax", "indices of the largest elements"},
      {"Tile", "copies of the input one after the other"},
      {"Embed", "rows of a table by index"},
      {"Silence", "nothing of unwanted inputs"},
      {"HDF5Output", "inputs written to an HDF5 file"},
      {"Data", "samples of a database"},
      {"ImageData", "images of a list of files"},
      {"HDF5Data", "samples of HDF5 files"},
      {"MemoryData", "samples handed over by a program"},
      {"DummyData", "filled tensors"},
      {"Input", "tensors set from outside"},
  };
  return types;
}

bool is_layer_type(std::string_view name) {
  return std::ranges::any_of(layer_types(), [&](const LayerType& type) { return type.name == name; });
}

}  // namespace cortado
