#pragma once

#include <span>
#include <string>
#include <vector>

#include "cortado/layers/layer.h"

namespace cortado {

// Into how many parts each dimension of a layer is cut: n samples, c output channels, d h w space, r the
// summed dimension (input channels). (Layer-wise parallelism, section 4; channel and filter parallelism,
// section 3: c is stationary-y, r stationary-x, both together stationary-w.)
struct Degrees {
  int n = 1, c = 1, d = 1, h = 1, w = 1, r = 1;
  int product() const { return n * c * d * h * w * r; }
  int replicas() const { return n * d * h * w; }  // that hold the same slices of parameters
  std::string text() const;                       // "n2 h2"; "1" when nothing is cut
  bool operator==(const Degrees&) const = default;
};

// A layer's parallelization configuration: the degrees and, in order, the devices (ranks) that share it.
// Device i has coordinates (n, d, h, w, c, r), the last running fastest. Blocks are contiguous; their sizes
// differ by at most one or, where `weights` are given (one per device, one dimension cut), follow the
// weights.
struct ParallelConfig {
  Degrees degrees;
  std::vector<int> devices{0};
  std::vector<double> weights;

  int index_of(int rank) const;  // -1: does not take part
  // "n2 h2 on 0-3", "n2 by 3:1 on 0-1", "n16 on 0,4,...,60".
  std::string text() const;
  bool operator==(const ParallelConfig&) const = default;
};

// Whether blocks can follow weights: one of n, c, d, h, w is cut, and that alone.
bool can_weigh(const Degrees& degrees);
// `config` with the weights of its devices, taken from those of all ranks. Without weights where blocks
// cannot follow them, or where the devices weigh the same.
ParallelConfig weighed(ParallelConfig config, std::span<const double> weights_of_ranks);

// `config` on other devices where it cuts samples over fewer of the first devices than there are: each part
// lies at the first of those devices that have the same samples where samples are cut over all. Otherwise as
// it is.
ParallelConfig spread(ParallelConfig config, int devices);

// The place of device `index` in the grid of degrees.
struct Coordinates {
  int n = 0, d = 0, h = 0, w = 0, c = 0, r = 0;
};
Coordinates coordinates_of(const Degrees& degrees, int index);

// Block `index` of `parts` of [0, extent). `weights`: empty, or one per part.
Range block_of(int64_t extent, int parts, int index, const std::vector<double>& weights = {});

// The axis of a domain of that rank that each dimension lies along; -1: it has none.
struct DimensionAxes {
  int n = 0, c = -1, d = -1, h = -1, w = -1;
};
DimensionAxes dimension_axes(int rank);

// The box of the domain that device `index` computes; with r > 1 it computes addends of it.
Box domain_block(const Shape& domain, const ParallelConfig& config, int index);

// Returns the box that device `index` owns of the sum where r > 1: the r-th part of its block's channels, as
// if the channels were cut c*r times.
Box summed_block(const Shape& domain, const ParallelConfig& config, int index);

}  // namespace cortado
