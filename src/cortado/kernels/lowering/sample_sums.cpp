#include "cortado/kernels/lowering/sample_sums.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "cortado/base/error.h"
#include "cortado/base/parallel_for.h"
#include "cortado/kernels/lowering/microkernel.h"

namespace cortado::lowering {

namespace {

constexpr int64_t gradient_rows = 512;  // rows of the gradient whose inputs stay in cache over all panels
constexpr int max_sample_levels = 6;    // of the tree

// to[r][column] = the sum over samples of left[sample][r] * panel[sample][column]; a row of `to` has the
// columns of so many vectors, one of the panel tile_columns.
template <int Rows, int Vectors>
void sum_samples(const float* left, int64_t depth, const float* panel, int64_t batch, int parts, float* to) {
  constexpr int64_t width = Vectors * vector_lanes;
  float kept[max_sample_levels][Rows * width];
  const int64_t samples = batch / parts;
  for (int part = 0; part < parts; ++part) {
    Tile<Rows, Vectors> tile;
    tile.set_rows(nullptr);
    multiply_columns<Rows>(tile, left + part * samples * depth, depth, samples,
                           panel + part * samples * tile_columns);
    const int levels = std::countr_one(static_cast<unsigned>(part));
    for (int level = 0; level < levels; ++level)
      for (int r = 0; r < Rows; ++r)
        for (int v = 0; v < Vectors; ++v)
          tile.value[r][v] = load(&kept[level][r * width + v * vector_lanes]) + tile.value[r][v];
    tile.store_rows(part == parts - 1 ? to : kept[levels], width);
  }
}

template <int Vectors, int... I>
constexpr auto sample_sum_functions(std::integer_sequence<int, I...>) {
  using Function = void (*)(const float*, int64_t, const float*, int64_t, int, float*);
  return std::array<Function, sizeof...(I) + 1>{nullptr, sum_samples<I + 1, Vectors>...};
}
template <int Vectors>
constexpr auto sum_samples_of_rows =
    sample_sum_functions<Vectors>(std::make_integer_sequence<int, tile_rows>());

}  // namespace

SampleSums::SampleSums(int64_t batch, int64_t depth, int64_t outputs, int parts)
    : batch_(batch),
      depth_(depth),
      outputs_(outputs),
      panels_(divide_up(outputs, tile_columns)),
      parts_(parts) {
  ensure(std::has_single_bit(static_cast<unsigned>(parts)) && batch % parts == 0 &&
             std::bit_width(static_cast<unsigned>(parts)) <= max_sample_levels,
         "samples of equal parts");
}

size_t SampleSums::scratch_bytes() const { return panels_ * batch_ * tile_columns * sizeof(float); }

void SampleSums::pack(const WeightProduct::Operands& operands, int64_t panel, float* packed) const {
  const int64_t first = panel * tile_columns, count = std::min<int64_t>(tile_columns, outputs_ - first);
  for (int64_t sample = 0; sample < batch_; ++sample, packed += tile_columns) {
    std::fill_n(packed, tile_columns, 0.0f);
    for (int64_t c = 0; c < count; ++c) {
      const int64_t at = sample * outputs_ + first + c;
      const bool passes = !operands.rectified || operands.rectified[at] > 0;
      packed[c] = passes ? operands.out_gradient[at] : operands.slope * operands.out_gradient[at];
      if (operands.masked) operands.masked[at] = packed[c];
    }
  }
}

// Rows [first, first + gradient_rows) of a panel.
void SampleSums::sum_weights(const float* left, const float* packed, int64_t first, int64_t panel,
                             float* gradient) const {
  const int64_t end = std::min(depth_, first + gradient_rows), column = panel * tile_columns;
  const int64_t width = panel_width(outputs_, column);
  const auto& sum = width == tile_columns ? sum_samples_of_rows<tile_vectors> : sum_samples_of_rows<1>;
  for (int64_t row = first; row < end; row += tile_rows)
    sum[std::min<int64_t>(tile_rows, end - row)](left + row, depth_, packed, batch_, parts_,
                                                 gradient + column * depth_ + row * width);
}

void SampleSums::sum_bias(const float* packed, int64_t panel, float* bias) const {
  const float one = 1;
  float sums[tile_columns];
  sum_samples<1, tile_vectors>(&one, 0, packed, batch_, parts_, sums);
  const int64_t first = panel * tile_columns;
  std::copy_n(sums, std::min<int64_t>(tile_columns, outputs_ - first), bias + first);
}

void SampleSums::run(const WeightProduct::Operands& operands, float* weight_gradient, float* bias_gradient,
                     std::byte* scratch) const {
  auto* packed = reinterpret_cast<float*>(scratch);
  const int64_t panel_elements = batch_ * tile_columns;
  parallel_for(panels_, [&](int64_t panel) {
    pack(operands, panel, packed + panel * panel_elements);
    if (bias_gradient) sum_bias(packed + panel * panel_elements, panel, bias_gradient);
  });
  const int64_t blocks = weight_gradient ? divide_up(depth_, gradient_rows) : 0;
  parallel_ranges(blocks * panels_, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item)
      sum_weights(operands.left, packed + item % panels_ * panel_elements, item / panels_ * gradient_rows,
                  item % panels_, weight_gradient);
  });
}

}  // namespace cortado::lowering
