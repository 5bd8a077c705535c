#pragma once

#include "cortado/base/random.h"
#include "cortado/layers/layer.h"

namespace cortado {

// Fills `values`, of row-major order in `shape`, as Caffe's fillers do; element i draws index i of `stream`.
// Throws UserError when the filler does not fit the shape.
void fill(const Filler& filler, const Shape& shape, const RandomStream& stream, float* values);

// The same for the elements of `part` alone, row-major in the part: each gets the value it has in the whole.
void fill(const Filler& filler, const Shape& shape, const Box& part, const RandomStream& stream,
          float* values);

}  // namespace cortado
