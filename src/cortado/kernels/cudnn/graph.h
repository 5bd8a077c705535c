#pragma once

#include <string>
#include <vector>

#include "cortado/base/element_type.h"
#include "cortado/kernels/cudnn/descriptor.h"

namespace cortado::cudnn {

// A convolution of dense tensors, channels last: extents n, c and two or three spatial ones. Weights are
// outputs, channels of a group, taps, and channels last, too. How many groups there are follows from the
// channels.
struct Convolution {
  ElementType type = ElementType::f32;  // of the factors: f32 or bf16; sums are f32
  bool tf32 = false;                    // f32 factors may be rounded to TF32
  std::vector<int64_t> x, w, y;
  std::vector<int64_t> stride, dilation, before, after;  // per spatial axis; padding before and after
};

enum class Pass { forward, backward_data, backward_weights };

// One pass as cuDNN is to run it.
struct GraphOf {
  Convolution convolution;
  Pass pass = Pass::forward;
  bool bias = false, relu = false;  // of a forward pass: after the products, in the same kernel
  std::string text() const;         // equal for equal graphs
};

// Names of tensors in a graph and among the pointers of a run.
enum TensorId : int64_t { id_x = 1, id_w, id_y, id_bias, first_virtual_id };

// The operations of the pass, finalized. `handle`: null where there is no device. ReLU is max(t, t - t),
// which keeps what is not finite. Throws Refusal.
Descriptor graph(const GraphOf& of, cudnnHandle_t handle);

}  // namespace cortado::cudnn
