#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cortado/base/element_type.h"
#include "cortado/kernels/lowering/lattice.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/task.h"

namespace cortado::lowering {

// One spatial axis of a convolution on this device's boxes: window o reads image positions
// o*stride - pad + k*dilation. A box cut out of the tensor makes `pad` one-sided and possibly negative.
struct ConvolutionAxis {
  int64_t image = 1, windows = 1;
  int64_t kernel = 1, stride = 1, dilation = 1, pad = 0;
  int64_t offset(int64_t k) const { return k * dilation - pad; }
};

// A convolution from an image to windows, free of layers and boxes. Deconvolution is the same problem run
// from the windows to the image. Both tensors are dense, channels last.
struct ConvolutionProblem {
  int64_t batch = 1;
  int64_t groups = 1;
  int64_t image_channels = 1, window_channels = 1;  // of each group
  std::array<ConvolutionAxis, 3> axis;              // d, h, w
  ElementType image_type = ElementType::f32, window_type = ElementType::f32;
  // Parts of these channels, a power of two, each summed on its own and then added up in a fixed tree.
  int image_parts = 1, window_parts = 1;
  int64_t all_window_channels = 0;  // of the whole layer, where sums must not depend on the part; 0: else

  bool all_f32() const { return image_type == ElementType::f32 && window_type == ElementType::f32; }
  int64_t taps() const { return axis[0].kernel * axis[1].kernel * axis[2].kernel; }

  // Taps along w and the channels are one contiguous run where there are so few channels that a run of one
  // tap's channels would be short.
  bool flattens_taps() const;
  // Rows are windows, the left operand is the image: forward, and (with WeightProduct) backward-weights.
  Lattice gather_lattice() const;
};

// Image positions residue, residue + stride, ... of one axis, and the taps through which windows read them:
// position residue + stride * row meets window row + axis.offset[i] through taps[i].
struct ResidueClass {
  LatticeAxis axis;  // rows are positions, the left tensor is the windows
  std::vector<int64_t> taps;
};
ResidueClass residue_class(const ConvolutionAxis& axis, int64_t residue);

// The problem of a {Convolution, ...} or {Deconvolution, ...} task, or the reason why it is not one.
std::optional<ConvolutionProblem> convolution_problem(const ConvolutionOptions& options, const Shape& image,
                                                      const Box& image_box, const Shape& windows,
                                                      const Box& window_box, std::string& refusal);

// What a chain applies to the first layer's output.
struct ChainTail {
  bool rectify = false;
  float slope = 0;
};
// {Layer} and {Layer, ReLU} are accepted; otherwise nothing, and the reason.
std::optional<ChainTail> chain_tail(const Task& task, std::string& refusal);

}  // namespace cortado::lowering
