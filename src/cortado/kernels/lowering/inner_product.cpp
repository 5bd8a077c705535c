#include "cortado/kernels/lowering/inner_product.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/lowering/channels.h"
#include "cortado/kernels/lowering/lowered_weight.h"
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

// input gradient[n][k] = sum over o of weight[o][k] * gradient[n][o], computed transposed: the weight, which
// is by far the largest, is the left operand, read panel by panel as it lies, and the gradient is packed
// to [n / tile_columns][o][tile_columns].
class InputGradient {
 public:
  explicit InputGradient(const Extents& extents)
      : extents_(extents),
        panels_(divide_up(extents.outputs, tile_columns)),
        parts_(divide_up(extents.batch, tile_columns)) {}

  size_t scratch_bytes() const {
    return (packed_elements() + compute_threads() * block_rows * tile_columns) * sizeof(float);
  }

  void run(const float* weight, const float* gradient, float* input_gradient, std::byte* scratch) const {
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

class InnerProductKernel : public Kernel {
 public:
  InnerProductKernel(const Extents& extents, WeightPanels panels, const ChainTail& tail, const Task& task)
      : extents_(extents),
        tail_(tail),
        weight_(panels.format(), task.canonical_parameters),
        forward_(sample_lattice(extents)),
        input_gradient_(extents),
        weight_gradient_(sample_lattice(extents)),
        weights_step_(any_wanted(task.parameter_gradients)) {}

  std::string name() const override { return "implicit-gemm"; }
  BackwardReads backward_reads() const override {
    return {.inputs = weights_step_, .outputs = tail_.rectify};
  }
  bool overwrites_output_gradients() const override { return tail_.rectify; }
  ParameterFormat parameter_format(int index) const override {
    return index == 0 ? weight_.format() : ParameterFormat{};
  }
  Bytes scratch_bytes() const override {
    const size_t products = std::max(
        {forward_.scratch_bytes(), input_gradient_.scratch_bytes(), weight_gradient_.scratch_bytes()});
    return {static_cast<int64_t>(weight_.scratch_bytes() + products)};
  }

  void forward(const Arguments& a) override {
    const float* bias = a.parameters.size() > 1 ? a.parameters[1] : nullptr;
    forward_.run(a.inputs[0], weight_.read(a.parameters[0], a.scratch), a.outputs[0],
                 {bias, tail_.rectify, tail_.slope}, rest(a));
  }

  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    if (!weights_step_ || a.input_gradients_first) mask(a);
    input_gradient_.run(weight_.read(a.parameters[0], a.scratch), a.output_gradients[0], a.input_gradients[0],
                        rest(a));
  }

  void backward_weights(const Arguments& a) override {
    if (!weights_step_) return;
    if (!a.input_gradients_first) mask(a);
    float* bias = a.parameter_gradients.size() > 1 ? a.parameter_gradients[1] : nullptr;
    weight_.write(a.parameter_gradients[0], a.scratch, [&](float* gradient) {
      weight_gradient_.run({a.inputs[0], a.output_gradients[0]}, gradient, bias, rest(a));
    });
  }

 private:
  std::byte* rest(const Arguments& a) const { return a.scratch + weight_.scratch_bytes(); }
  void mask(const Arguments& a) const {
    if (tail_.rectify)
      mask_gradient(a.outputs[0], tail_.slope, extents_.batch * extents_.outputs, a.output_gradients[0]);
  }

  Extents extents_;
  ChainTail tail_;
  LoweredWeight weight_;
  RowProduct forward_;
  InputGradient input_gradient_;
  WeightProduct weight_gradient_;
  bool weights_step_;  // backward_weights runs, too
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
  offer.kernel = std::make_unique<InnerProductKernel>(extents, panels, *tail, task);
  return offer;
}

}  // namespace cortado::lowering
