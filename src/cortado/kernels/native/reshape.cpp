#include "cortado/layers/reshape.h"

#include <algorithm>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/native.h"
#include "cortado/kernels/native/simd.h"
#include "cortado/layers/flatten.h"

namespace cortado {
namespace native {
namespace {

// Per sample, memory holds positions x channels of what is spoken as channels x positions.
struct MemoryOrder {
  int64_t samples = 1, channels = 1, positions = 1;
  explicit MemoryOrder(const Shape& shape) {
    if (shape.rank() > 2) channels = shape[1], positions = shape.spatial_size();
    samples = shape.size() / std::max<int64_t>(1, channels * positions);
  }
  bool as_spoken() const { return channels == 1 || positions == 1; }
  bool operator==(const MemoryOrder&) const = default;
};

template <typename E>
void copy_elements(const E* from, E* to, int64_t count) {
  if (from == to) return;
  parallel_ranges(count,
                  [&](int64_t begin, int64_t end) { std::copy(from + begin, from + end, to + begin); });
}

// `matrices` times, to[c][r] = from[r][c] of rows x columns, by blocks that stay in the first-level cache.
template <typename E>
void transpose(const E* from, E* to, int64_t matrices, int64_t rows, int64_t columns) {
  constexpr int64_t block = 32;
  const int64_t row_blocks = (rows + block - 1) / block;
  parallel_for(matrices * row_blocks, [&](int64_t index) {
    const int64_t matrix = index / row_blocks * rows * columns;
    const int64_t first = index % row_blocks * block, last = std::min(rows, first + block);
    for (int64_t left = 0; left < columns; left += block) {
      for (int64_t c = left; c < std::min(columns, left + block); ++c) {
        for (int64_t r = first; r < last; ++r) to[matrix + c * rows + r] = from[matrix + r * columns + c];
      }
    }
  });
}

// The same elements in spoken order: a copy where memory keeps its order, else a transposition per sample.
template <typename E>
class ReshapeKernel : public Kernel {
 public:
  ReshapeKernel(const MemoryOrder& input, const MemoryOrder& output) : input_(input), output_(output) {}

  std::string name() const override { return same_order() ? "native copy" : "native transpose"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }
  bool in_place() const override { return same_order(); }

  void forward(const Arguments& arguments) override {
    move(elements<E>(arguments.inputs[0]), input_, elements<E>(arguments.outputs[0]), output_);
  }
  void backward(const Arguments& arguments) override {
    move(elements<E>(arguments.output_gradients[0]), output_, elements<E>(arguments.input_gradients[0]),
         input_);
  }

 private:
  bool same_order() const { return input_ == output_ || (input_.as_spoken() && output_.as_spoken()); }

  void move(const E* from, const MemoryOrder& source, E* to, const MemoryOrder& destination) const {
    if (same_order()) {
      copy_elements(from, to, source.samples * source.channels * source.positions);
    } else if (destination.as_spoken()) {
      transpose(from, to, source.samples, source.positions, source.channels);
    } else {
      transpose(from, to, destination.samples, destination.channels, destination.positions);
    }
  }

  MemoryOrder input_, output_;
};

}  // namespace
}  // namespace native

KernelOffer make_native_reshape(const Task& task) {
  bool known = dynamic_cast<const Flatten*>(&task.layer()) || dynamic_cast<const Reshape*>(&task.layer());
  if (!known || task.layers.size() != 1) return {nullptr, "only for Reshape and Flatten"};
  native::MemoryOrder input(task.local_input(0)), output(task.local_output(0));
  if (input != output && !input.as_spoken() && !output.as_spoken()) {
    return {nullptr, "channels and positions are regrouped on both sides"};
  }
  return native::offer_by_type(
      task, [&]<typename E>() { return std::make_unique<native::ReshapeKernel<E>>(input, output); });
}

}  // namespace cortado
