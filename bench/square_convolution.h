#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cortado/kernels/kernel.h"
#include "cortado/layers/convolution.h"

namespace cortado {

// A convolution of square images by square windows.
struct SquareConvolution {
  std::string name;
  int64_t batch, channels, outputs, extent, kernel, stride, pad, group;
  int64_t out() const { return (extent + 2 * pad - kernel) / stride + 1; }
};

inline Task task_of(const SquareConvolution& of) {
  ConvolutionOptions options;
  options.num_output = of.outputs;
  options.group = of.group;
  options.kernel = {of.kernel};
  options.stride = {of.stride};
  options.pad = {of.pad};
  const Shape input{of.batch, of.channels, of.extent, of.extent};
  return whole_task(std::make_shared<Convolution>(options), Phase::train, {&input, 1}, 1);
}

inline std::vector<SquareConvolution> convolutions_of_caffenet(int64_t batch) {
  return {{"conv1", batch, 3, 96, 227, 11, 4, 0, 1},
          {"conv2", batch, 96, 256, 27, 5, 1, 2, 2},
          {"conv3", batch, 256, 384, 13, 3, 1, 1, 1},
          {"conv4", batch, 384, 384, 13, 3, 1, 1, 2},
          {"conv5", batch, 384, 256, 13, 3, 1, 1, 2}};
}

}  // namespace cortado
