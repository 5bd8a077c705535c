#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace cortado::lowering {

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return divide_up(a, b) * b; }

// One spatial axis of the lattice.
struct LatticeAxis {
  int64_t rows = 1;  // lattice points along this axis
  int64_t step = 1;  // left position of row i at tap t: i * step + offset[t]
  std::vector<int64_t> offset = {0};
  int64_t extent = 1;       // of the left tensor, in positions
  int64_t left_stride = 0;  // elements from one position to the next
  int64_t out_stride = 0;   // elements from one row to the next
};

// The points of a product's output (its rows) and what each tap reads of the left tensor.
struct Lattice {
  int64_t batch = 1;
  int64_t left_batch_stride = 0, out_batch_stride = 0;
  std::array<LatticeAxis, 3> axis;  // d, h, w
  // Number of consecutive w positions read at a tap, contiguous in memory: more than one where (w, channel)
  // is flattened because there are few channels.
  int64_t run = 1;
  int64_t depth = 1;  // elements read at a tap (run * channels)
  int64_t columns = 1;

  int64_t rows() const { return batch * axis[0].rows * axis[1].rows * axis[2].rows; }
  int64_t taps() const {
    return static_cast<int64_t>(axis[0].offset.size() * axis[1].offset.size() * axis[2].offset.size());
  }

  // Elements from one row to the next.
  struct Pitch {
    int64_t left = 0, out = 0;
  };
  // That of a pointwise product whose rows lie evenly in both tensors; else none.
  std::optional<Pitch> pitch() const;
};

}  // namespace cortado::lowering
