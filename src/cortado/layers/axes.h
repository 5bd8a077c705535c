#pragma once

#include "cortado/layers/layer.h"

namespace cortado {

// A layer of a single input and output computes each part of the output from the same part of the input along
// all axes but `axis`, of which it reads everything.
Box box_with_whole_axis(const Shape& input, const Box& output_box, int axis);

// All cuts of a tensor of that rank except those along axes [begin, end). Axis 0 is n, axis 1 c, the last
// w, the one before it h, and so on; tensors of more than five axes are not cut behind the channel axis.
Cuts cuts_outside(int rank, int begin, int end);

}  // namespace cortado
