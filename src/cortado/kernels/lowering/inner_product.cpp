#include "cortado/kernels/lowering/inner_product.h"

#include <algorithm>
#include <array>
#include <bit>
#include <fmt/format.h>
#include <utility>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/lowering/convolution_kernel.h"
#include "cortado/kernels/lowering/microkernel.h"
#include "cortado/kernels/lowering/panels.h"
#include "cortado/kernels/lowering/row_product.h"
#include "cortado/kernels/lowering/sample_sums.h"
#include "cortado/kernels/lowering/weight_product.h"

namespace cortado::lowering {

namespace {

struct Extents {
  int64_t batch, depth, outputs;
};

// Rows are samples.
Lattice sample_lattice(const Extents& extents) {
  Lattice lattice;
  lattice.depth = extents.depth;
  lattice.columns = extents.outputs;
  lattice.axis[2] = {extents.batch, 1, {0}, extents.batch, extents.depth, extents.outputs};
  return lattice;
}

class Output : public DataProduct {
 public:
  explicit Output(const Extents& extents) : product_(sample_lattice(extents)) {}
  void run(const float* input, const float* weight, float* output, const Epilogue& epilogue,
           std::byte* scratch) const override {
    product_.run(input, weight, output, epilogue, scratch);
  }
  size_t scratch_bytes() const override { return product_.scratch_bytes(); }

 private:
  RowProduct product_;
};

// input gradient[n][k] = sum over o of weight[o][k] * gradient[n][o], computed transposed: the weight, which
// is by far the largest, is the left operand, read panel by panel as it lies, and the gradient is packed
// to [n / tile_columns][o][tile_columns]. It has no epilogue. With `blocks`, a power of two, a sum goes over
// each of so many parts of the outputs, then over these in the tree of base/sum_tree.h.
class InputGradient : public DataProduct {
 public:
  InputGradient(const Extents& extents, int blocks)
      : extents_(extents),
        blocks_(blocks),
        panels_(divide_up(extents.outputs, tile_columns)),
        parts_(divide_up(extents.batch, tile_columns)) {}

  size_t scratch_bytes() const override {
    return (packed_elements() + compute_threads() * sums_elements()) * sizeof(float);
  }

  void run(const float* gradient, const float* weight, float* input_gradient, const Epilogue&,
           std::byte* scratch) const override {
    auto* packed = reinterpret_cast<float*>(scratch);
    pack(gradient, packed);
    const int64_t threads = compute_threads(), blocks = divide_up(extents_.depth, block_rows);
    parallel_for(threads, [&](int64_t thread) {
      float* sums = packed + packed_elements() + thread * sums_elements();
      for (int64_t block = blocks * thread / threads; block < blocks * (thread + 1) / threads; ++block)
        for (int64_t part = 0; part < parts_; ++part)
          run_block(weight, packed, block * block_rows, part, sums, input_gradient);
    });
  }

 private:
  static constexpr int64_t block_rows = 32 * tile_rows;
  static constexpr int64_t panel_group = 4;  // streams of the weight read at a time

  // A level for each of the tree's, and one for the sum under way.
  int64_t levels() const { return std::bit_width(static_cast<unsigned>(blocks_)); }
  int64_t sums_elements() const { return levels() * block_rows * tile_columns; }
  int64_t packed_elements() const { return parts_ * panels_ * tile_columns * tile_columns; }

  void pack(const float* gradient, float* packed) const {
    const auto& [batch, depth, outputs] = extents_;
    parallel_for(parts_ * panels_, [&, batch = batch, outputs = outputs](int64_t item) {
      const int64_t sample = item / panels_ * tile_columns, output = item % panels_ * tile_columns;
      float* to = packed + item * tile_columns * tile_columns;
      std::fill_n(to, tile_columns * tile_columns, 0.0f);
      transpose(gradient + sample * outputs + output, outputs, to, tile_columns,
                std::min<int64_t>(tile_columns, batch - sample),
                std::min<int64_t>(tile_columns, outputs - output));
    });
  }

  // What is added to the tile of rows [row, row + Rows): outputs of successive panels, and then kept sums.
  struct Addends {
    const float* weight;  // of the first panel
    int64_t depth, row;   // of its rows
    int64_t columns;      // from the first panel's first on
    const float* packed;
    Range outputs;      // from the first panel's first on
    const float* from;  // sums to continue; null: zeros
    const float* kept;  // of so many levels
    int levels;
    float* to;
  };

  template <int Rows>
  static void add_panels(const Addends& addends) {
    Tile<Rows> tile;
    if (!addends.from) tile.set_rows(nullptr);
    for (int r = 0; r < Rows && addends.from; ++r) tile.load_row(r, addends.from + r * tile_columns);
    const auto& [begin, end] = addends.outputs;
    for (int64_t column = 0; column < end; column += tile_columns) {
      const int64_t first = std::max<int64_t>(0, begin - column);
      const int64_t width = panel_width(addends.columns, column);
      const float* rows[Rows];
      for (int r = 0; r < Rows; ++r)
        rows[r] = addends.weight + column * addends.depth + (addends.row + r) * width;
      multiply_rows<Rows>(tile, rows, first, std::min<int64_t>(tile_columns, end - column) - first,
                          addends.packed + (column + first) * tile_columns);
    }
    for (int level = 0; level < addends.levels; ++level)
      for (int r = 0; r < Rows; ++r)
        for (int v = 0; v < tile_vectors; ++v)
          tile.value[r][v] += load(addends.kept + (level * block_rows + r) * tile_columns + v * vector_lanes);
    for (int r = 0; r < Rows; ++r) tile.store_row(r, addends.to + r * tile_columns);
  }

  template <int... I>
  static constexpr auto add_functions(std::integer_sequence<int, I...>) {
    using Function = void (*)(const Addends&);
    return std::array<Function, sizeof...(I) + 1>{nullptr, add_panels<I + 1>...};
  }

  void run_block(const float* weight, const float* packed, int64_t first_row, int64_t part, float* sums,
                 float* input_gradient) const {
    static constexpr auto add_panels_of_rows = add_functions(std::make_integer_sequence<int, tile_rows>());
    const auto& [batch, depth, outputs] = extents_;
    const int64_t rows = std::min(block_rows, depth - first_row);
    const int64_t level_elements = block_rows * tile_columns;
    float* result = sums + (levels() - 1) * level_elements;
    for (int block = 0; block < blocks_; ++block) {
      const Range all{outputs * block / blocks_, outputs * (block + 1) / blocks_};
      const int levels = std::countr_one(static_cast<unsigned>(block));
      for (int64_t panel = all.begin / tile_columns; panel * tile_columns < all.end; panel += panel_group) {
        const int64_t first = panel * tile_columns, next = first + panel_group * tile_columns;
        const bool last = next >= all.end;
        for (int64_t row = 0; row < rows; row += tile_rows) {
          const auto of_row = [&](float* level) { return level + row * tile_columns; };
          float* kept = last && block < blocks_ - 1 ? sums + levels * level_elements : result;
          add_panels_of_rows[std::min<int64_t>(tile_rows, rows - row)](
              {.weight = weight + first * depth,
               .depth = depth,
               .row = first_row + row,
               .columns = outputs - first,
               .packed = packed + (part * panels_ + panel) * tile_columns * tile_columns,
               .outputs = {std::max(all.begin, first) - first, std::min(all.end, next) - first},
               .from = first > all.begin ? of_row(result) : nullptr,
               .kept = of_row(sums),
               .levels = last ? levels : 0,
               .to = of_row(kept)});
        }
      }
    }
    const int64_t sample = part * tile_columns;
    transpose(result, tile_columns, input_gradient + sample * depth + first_row, depth, rows,
              std::min<int64_t>(tile_columns, batch - sample));
  }

  Extents extents_;
  int blocks_;  // of outputs
  int64_t panels_, parts_;
};

class WeightGradient : public FilterProduct {
 public:
  explicit WeightGradient(const Extents& extents) : product_(sample_lattice(extents)) {}
  void run(const WeightProduct::Operands& operands, float* weight_gradient, float* bias_gradient,
           std::byte* scratch) const override {
    product_.run(operands, weight_gradient, bias_gradient, scratch);
  }
  size_t scratch_bytes() const override { return product_.scratch_bytes(); }

 private:
  WeightProduct product_;
};

}  // namespace

KernelOffer make_inner_product(const Task& task, const InnerProductOptions& options) {
  KernelOffer offer;
  const std::optional<ChainTail> tail = chain_tail(task, offer.refusal);
  if (!tail) return offer;
  const Shape input = task.local_input(0);
  if (input.rank() < 2 || input.canonical_axis(options.axis) != 1) {
    offer.refusal = fmt::format("axis {} of a rank {} input", options.axis, input.rank());
    return offer;
  }
  const Extents extents{input[0], input.count(1), task.local_output(0).count(1)};
  const WeightPanels panels(1, extents.outputs, input.spatial_size(), input[1], options.transpose);
  std::unique_ptr<const FilterProduct> weights;
  if (task.sample_blocks > 0)
    weights =
        std::make_unique<SampleSums>(extents.batch, extents.depth, extents.outputs, task.sample_parts());
  else
    weights = std::make_unique<WeightGradient>(extents);
  offer.kernel = make_gather_kernel(
      *tail, task,
      {std::make_unique<Output>(extents), std::make_unique<InputGradient>(extents, task.output_parts()),
       std::move(weights), "implicit-gemm", panels.format()});
  return offer;
}

}  // namespace cortado::lowering
