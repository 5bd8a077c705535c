#pragma once

#include <string>

#include "cortado/kernels/cudnn/graph.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/task.h"

namespace cortado::cudnn {

// The convolution that a task is, or why it is none that cuDNN is asked for. No device is needed.
struct Problem {
  Convolution convolution{};
  std::string refusal{};  // empty: none
  bool spreads = false;   // a deconvolution: its input is the convolution's y, its output the convolution's x
  bool bias = false, relu = false;
  bool narrows_source = false;  // the input is f32, its factors are bf16
};
Problem problem_of(const Task& task, const ConvolutionOptions& options, bool spreads, bool tf32);

}  // namespace cortado::cudnn
