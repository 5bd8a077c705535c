#pragma once

#include <vector>

#include "cortado/layers/convolution.h"
#include "cortado/layers/pointwise.h"

#include "tests/kernels/make_layer.h"

namespace cortado::check {

// A convolution's window; values for one axis or for each.
struct Window {
  std::vector<int64_t> kernel{3}, stride{1}, pad{1}, dilation{1};
};

inline ConvolutionOptions convolution(int64_t outputs, const Window& window, int64_t group = 1,
                                      bool bias = true) {
  ConvolutionOptions options;
  options.num_output = outputs;
  options.bias_term = bias;
  options.group = group;
  options.kernel = window.kernel;
  options.stride = window.stride;
  options.pad = window.pad;
  options.dilation = window.dilation;
  return options;
}

inline const std::vector<Window> windows = {{},
                                            {{1}, {1}, {0}, {1}},
                                            {{3}, {2}, {1}, {1}},
                                            {{2}, {3}, {0}, {1}},
                                            {{3}, {1}, {2}, {2}},
                                            {{5}, {1}, {0}, {1}}};

}  // namespace cortado::check
