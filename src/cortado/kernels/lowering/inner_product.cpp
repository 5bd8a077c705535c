#include "cortado/kernels/lowering/inner_product.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/lowering/convolution_kernel.h"
#include "cortado/kernels/lowering/microkernel.h"
#include "cortado/kernels/lowering/panels.h"
#include "cortado/kernels/lowering/row_product.h"
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
// to [n / tile_columns][o][tile_columns]. It has no epilogue.
class InputGradient : public DataProduct {
 public:
  explicit InputGradient(const Extents& extents)
      : extents_(extents),
        panels_(divide_up(extents.outputs, tile_columns)),
        parts_(divide_up(extents.batch, tile_columns)) {}

  size_t scratch_bytes() const override {
    return (packed_elements() + compute_threads() * block_rows * tile_columns) * sizeof(float);
  }

  void run(const float* gradient, const float* weight, float* input_gradient, const Epilogue&,
           std::byte* scratch) const override {
    auto* packed = reinterpret_cast<float*>(scratch);
    pack(gradient, packed);
    const int64_t threads = compute_threads(), blocks = divide_up(extents_.depth, block_rows);
    parallel_for(threads, [&](int64_t thread) {
      float* sums = packed + packed_elements() + thread * block_rows * tile_columns;
      for (int64_t block = blocks * thread / threads; block < blocks * (thread + 1) / threads; ++block)
        for (int64_t part = 0; part < parts_; ++part)
          run_block(weight, packed, block * block_rows, part, sums, input_gradient);
    });
  }

 private:
  static constexpr int64_t block_rows = 32 * tile_rows;
  static constexpr int64_t panel_group = 4;  // streams of the weight read at a time

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

  // Adds `count` panels to the tile of rows [row, row + Rows) at `sums`.
  template <int Rows>
  static void add_panels(const float* weight, int64_t panel_stride, int64_t count, const float* packed,
                         float* sums, bool first) {
    Tile<Rows> tile;
    if (first) tile.set_rows(nullptr);
    for (int r = 0; r < Rows && !first; ++r) tile.load_row(r, sums + r * tile_columns);
    const float* rows[Rows];
    for (int r = 0; r < Rows; ++r) rows[r] = weight + r * tile_columns;
    for (int64_t panel = 0; panel < count; ++panel)
      multiply_rows<Rows>(tile, rows, panel * panel_stride, tile_columns,
                          packed + panel * tile_columns * tile_columns);
    for (int r = 0; r < Rows; ++r) tile.store_row(r, sums + r * tile_columns);
  }

  template <int... I>
  static constexpr auto add_functions(std::integer_sequence<int, I...>) {
    using Function = void (*)(const float*, int64_t, int64_t, const float*, float*, bool);
    return std::array<Function, sizeof...(I) + 1>{nullptr, add_panels<I + 1>...};
  }

  void run_block(const float* weight, const float* packed, int64_t first_row, int64_t part, float* sums,
                 float* input_gradient) const {
    static constexpr auto add_panels_of_rows = add_functions(std::make_integer_sequence<int, tile_rows>());
    const auto& [batch, depth, outputs] = extents_;
    const int64_t rows = std::min(block_rows, depth - first_row), panel_stride = depth * tile_columns;
    for (int64_t panel = 0; panel < panels_; panel += panel_group)
      for (int64_t row = 0; row < rows; row += tile_rows)
        add_panels_of_rows[std::min<int64_t>(tile_rows, rows - row)](
            weight + panel * panel_stride + (first_row + row) * tile_columns, panel_stride,
            std::min(panel_group, panels_ - panel),
            packed + (part * panels_ + panel) * tile_columns * tile_columns, sums + row * tile_columns,
            panel == 0);
    const int64_t sample = part * tile_columns;
    transpose(sums, tile_columns, input_gradient + sample * depth + first_row, depth, rows,
              std::min<int64_t>(tile_columns, batch - sample));
  }

  Extents extents_;
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
  offer.kernel =
      make_gather_kernel(*tail, task,
                         {std::make_unique<Output>(extents), std::make_unique<InputGradient>(extents),
                          std::make_unique<WeightGradient>(extents), "implicit-gemm", panels.format()});
  return offer;
}

}  // namespace cortado::lowering
