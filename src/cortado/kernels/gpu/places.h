#pragma once

#include "cortado/kernels/gpu/part.h"

namespace cortado::gpu {

// The global indices of an element, in spoken order of the axes.
struct Indices {
  int64_t of[most_axes] = {};
  CORTADO_EVERYWHERE int64_t& operator[](int axis) { return of[axis]; }
  CORTADO_EVERYWHERE int64_t operator[](int axis) const { return of[axis]; }
};

// Where the elements of a part of a tensor of at most most_axes axes lie in memory, addressed by global
// indices.
struct AxesPlace {
  int rank = 0;
  int fastest[most_axes] = {};  // the axes, that with neighbouring elements first
  int64_t begin[most_axes] = {}, extent[most_axes] = {}, stride[most_axes] = {};
  int64_t elements = 1;

  CORTADO_EVERYWHERE Indices indices(int64_t offset) const {
    Indices at;
    for (int k = 0; k < rank; ++k) {
      const int axis = fastest[k];
      at[axis] = begin[axis] + offset % extent[axis];
      offset /= extent[axis];
    }
    return at;
  }
  CORTADO_EVERYWHERE int64_t offset(const Indices& at) const {
    int64_t offset = 0;
    for (int axis = 0; axis < rank; ++axis) offset += (at[axis] - begin[axis]) * stride[axis];
    return offset;
  }
  CORTADO_EVERYWHERE bool holds(const Indices& at) const {
    for (int axis = 0; axis < rank; ++axis)
      if (at[axis] < begin[axis] || at[axis] >= begin[axis] + extent[axis]) return false;
    return true;
  }
};

// A part of an activation (channels last) or of a parameter (row-major), dense.
inline AxesPlace axes_place(const Box& box, bool channels_last = true) {
  AxesPlace place;
  place.rank = box.rank();
  place.elements = box.shape().size();
  const Strides strides = channels_last ? channels_last_strides(box.shape()) : row_major_strides(box.shape());
  for (int axis = 0; axis < place.rank; ++axis) {
    const int back = place.rank - 1 - axis;
    place.fastest[axis] = channels_last ? memory_axis(place.rank, back) : back;
    place.begin[axis] = box[axis].begin;
    place.extent[axis] = box[axis].size();
    place.stride[axis] = strides[axis];
  }
  return place;
}

}  // namespace cortado::gpu
