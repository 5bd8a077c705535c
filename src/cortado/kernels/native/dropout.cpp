#include "cortado/layers/dropout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/native.h"
#include "cortado/kernels/native/simd.h"

namespace cortado {

namespace native {

namespace {

// stream.bits(index) of an index per lane (base/random.h): the first word of Philox4x32-10.
uints random_bits(const RandomStream& stream, uints index_low, uints index_high) {
  uints a = index_low, b = index_high, c = uints{} + static_cast<uint32_t>(stream.iteration), d{};
  uint32_t key_low = static_cast<uint32_t>(stream.seed) ^ stream.owner;
  uint32_t key_high =
      static_cast<uint32_t>(stream.seed >> 32) ^ static_cast<uint32_t>(stream.iteration >> 32);
  for (int round = 0; round < 10; ++round) {
    const uints high0 = multiply_high(a, 0xD2511F53), low0 = a * 0xD2511F53u;
    const uints high1 = multiply_high(c, 0xCD9E8D57), low1 = c * 0xCD9E8D57u;
    a = high1 ^ b ^ key_low;
    b = low1;
    c = high0 ^ d ^ key_high;
    d = low0;
    key_low += 0x9E3779B9;
    key_high += 0xBB67AE85;
  }
  return a;
}

// y = kept ? x / (1 - ratio) : 0 * x. Which elements are kept is drawn again in the backward pass, so that no
// mask is stored. In testing, y = x.
template <typename E>
class DropoutKernel : public Kernel {
 public:
  DropoutKernel(const DropoutOptions& options, const Task& task)
      : box_(task.output_boxes[0]), strides_(row_major_strides(task.outputs[0])) {
    active_ = task.phase == Phase::train && options.ratio > 0;
    scale_ = active_ ? static_cast<float>(options.kept_scale()) : 1.0f;
    // uniform < ratio, in integers: bits <= last_dropped.
    last_dropped_ = static_cast<uint32_t>(std::ceil(std::ldexp(options.ratio, 32)) - 1);
  }

  std::string name() const override { return "native dropout"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }
  bool in_place() const override { return true; }

  void forward(const Arguments& arguments) override {
    apply(arguments.random, elements<E>(arguments.inputs[0]), elements<E>(arguments.outputs[0]));
  }
  void backward(const Arguments& arguments) override {
    if (!arguments.input_gradients[0]) return;
    apply(arguments.random, elements<E>(arguments.output_gradients[0]),
          elements<E>(arguments.input_gradients[0]));
  }

 private:
  void apply(const RandomStream& random, const E* source, E* target) const {
    if (!active_) {
      if (source != target) std::copy_n(source, box_.shape().size(), target);
      return;
    }
    // Runs of elements that are dense in memory: along the channels, or the last axis of a matrix.
    const int run_axis = std::min(1, box_.rank() - 1);
    const int64_t run = box_[run_axis].size();
    parallel_for(box_.shape().size() / std::max<int64_t>(1, run), [&](int64_t row) {
      drop_run(random, first_index(row, run_axis), strides_[run_axis], run, source + row * run,
               target + row * run);
    });
  }

  // Spoken index of the first element of run `row`.
  uint64_t first_index(int64_t row, int run_axis) const {
    int64_t index = box_[run_axis].begin * strides_[run_axis];
    for (int axis = box_.rank() - 1; axis >= 0; --axis) {
      if (axis == run_axis) continue;
      index += (box_[axis].begin + row % box_[axis].size()) * strides_[axis];
      row /= box_[axis].size();
    }
    return index;
  }

  // target[i] = source[i], dropped or scaled, the i-th element having index first + i * step.
  void drop_run(const RandomStream& random, uint64_t first, uint64_t step, int64_t count, const E* source,
                E* target) const {
    for (int64_t i = 0; i < count; i += lanes) {
      uints low, high;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const uint64_t index = first + (i + lane) * step;
        low[lane] = static_cast<uint32_t>(index);
        high[lane] = static_cast<uint32_t>(index >> 32);
      }
      const ints kept = random_bits(random, low, high) > last_dropped_;
      const int64_t valid = std::min(lanes, count - i);
      if (valid == lanes) {
        store(target + i, load<floats>(source + i) * (kept ? floats{} + scale_ : floats{}));
      } else {
        for (int64_t lane = 0; lane < valid; ++lane)
          store(target + i + lane, load<float>(source + i + lane) * (kept[lane] ? scale_ : 0));
      }
    }
  }

  Box box_;
  Strides strides_;
  bool active_;
  float scale_;
  uint32_t last_dropped_;
};

}  // namespace

}  // namespace native

KernelOffer make_native_dropout(const Task& task) {
  auto* dropout = dynamic_cast<const Dropout*>(&task.layer());
  if (!dropout) return {nullptr, "not a Dropout"};
  if (task.layers.size() > 1) return {nullptr, "a layer after Dropout does not fuse"};
  if (task.outputs[0].rank() == 0) return {nullptr, "a scalar"};
  return native::offer_by_type(task, [&]<typename E>() {
    return std::make_unique<native::DropoutKernel<E>>(dropout->options(), task);
  });
}

}  // namespace cortado
